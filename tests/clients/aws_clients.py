"""AWS's clients, unchanged but for the address that they are pointed at."""

import functools
import json
import threading
import time

import boto3
import botocore.config

ROLE = "arn:aws:iam::123456789012:role/SageMaker"
INSTANCE_TYPE = "ml.p5.48xlarge"
PREFIX_AWARE = {
    "RoutingStrategy": "PREFIX_AWARE",
    "PrefixAwareRoutingConfig": {"PrefixLength": 1024, "ConcurrencyThreshold": 4},
}
LEAST_OUTSTANDING = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
SOON = {"Delay": 0.05, "MaxAttempts": 400}


class Aws:
    """One account at one router. Nothing is sent twice, so that no failure stays unseen."""

    def __init__(self, url, access_key="any", secret_key="any", region="us-east-1"):
        self.url = url
        self.environment = {
            "AWS_ENDPOINT_URL": url,
            "AWS_DEFAULT_REGION": region,
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": secret_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self._session = boto3.Session(access_key, secret_key, region_name=region)

    @functools.cache
    def client(self, service):
        config = botocore.config.Config(retries={"total_max_attempts": 1}, max_pool_connections=50)
        return self._session.client(service, endpoint_url=self.url, config=config)

    @property
    def sagemaker(self):
        return self.client("sagemaker")

    @property
    def runtime(self):
        return self.client("sagemaker-runtime")

    def deploy(self, name, *variants, **config):
        """A model, a configuration and an endpoint of one name, in service. Without variants, one of two instances."""
        self.sagemaker.create_model(ModelName=name, PrimaryContainer={"Image": "vllm"}, ExecutionRoleArn=ROLE)
        variants = variants or (variant(name),)
        self.sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=list(variants), **config)
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
        self.wait_in_service(name)
        return name

    def host(self, name, instances=1, most=4):
        """An endpoint of this name for inference components, in service."""
        scaling = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": most}
        hosts = variant(None, InitialInstanceCount=instances, ManagedInstanceScaling=scaling)
        del hosts["ModelName"]
        create = self.sagemaker.create_endpoint_config
        create(EndpointConfigName=name, ProductionVariants=[hosts], ExecutionRoleArn=ROLE)
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
        self.wait_in_service(name)
        return name

    def place(self, endpoint, component, copies=1, **specification):
        """A component in service on an endpoint; of an adapter, its base and its artifact are said."""
        members = {"Specification": specification}
        if not specification:
            needs = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
            members["Specification"] = {"Container": {"Image": "vllm"}, "ComputeResourceRequirements": needs}
            members |= {"VariantName": "AllTraffic", "RuntimeConfig": {"CopyCount": copies}}
        create = self.sagemaker.create_inference_component
        create(InferenceComponentName=component, EndpointName=endpoint, **members)
        return self.wait_for_copies(component, copies)

    def wait_for_copies(self, component, copies):
        """A component's description, once it is in service with so many copies."""

        def there():
            described = self.sagemaker.describe_inference_component(InferenceComponentName=component)
            count = described.get("RuntimeConfig", {}).get("CurrentCopyCount", copies)
            return described["InferenceComponentStatus"] == "InService" and count == copies and described

        return eventually(there)

    def wait_in_service(self, endpoint):
        self.sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=endpoint, WaiterConfig=SOON)
        return self.sagemaker.describe_endpoint(EndpointName=endpoint)

    def invoke(self, endpoint, body, **members):
        """The answer of InvokeEndpoint, and the instance that gave it."""
        answer = self.runtime.invoke_endpoint(
            EndpointName=endpoint, ContentType="application/json", Body=json.dumps(body), **members
        )
        return answer, answer["ResponseMetadata"]["HTTPHeaders"]["x-isotherm-instance"]


class Load:
    """Callers with a prefix of their own each, one request after the other; what `ask` raises is a failure."""

    def __init__(self, aws, endpoint, callers=8, ask=None):
        self.aws, self.endpoint, self.ask = aws, endpoint, ask or self.invoke
        self.done, self.failures = 0, []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._call, args=(number,)) for number in range(callers)]

    def invoke(self, body):
        self.aws.invoke(self.endpoint, body)[0]["Body"].read()

    def _call(self, number):
        while not self.over.is_set():
            try:
                self.ask(question(self.done, about=number))
                self.done += 1
            except Exception as failure:
                self.failures.append(failure)

    def wait_for(self, more, within=15):
        wanted = self.done + more
        eventually(lambda: self.done >= wanted, within=within)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def variant(model, **members):
    return {
        "VariantName": "AllTraffic",
        "ModelName": model,
        "InstanceType": INSTANCE_TYPE,
        "InitialInstanceCount": 2,
        "RoutingConfig": PREFIX_AWARE,
        **members,
    }


def question(number, about="travel"):
    """A native body; all about one thing begin with the same text, longer than any prefix here."""
    policy = f"The policy on {about}. Every receipt is kept, and every journey approved before it begins. " * 20
    return {"inputs": f"{policy}Question {number}?", "parameters": {"max_new_tokens": 4}}


def eventually(holds, within=15):
    """The first true value of `holds`, which may raise until then."""
    deadline = time.monotonic() + within
    while True:
        seen = None
        try:
            seen = holds()
        except Exception:
            if time.monotonic() > deadline:
                raise
        if seen:
            return seen
        assert time.monotonic() < deadline, f"not within {within} s: {seen!r}"
        time.sleep(0.05)
