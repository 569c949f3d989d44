//! `ModelError`: what a container did wrong, as SageMaker words it.

use serde_json::{Value, json};

/// Where an error happened: its message names that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    /// The endpoint's name.
    pub endpoint: String,
    /// The account that it belongs to.
    pub account: String,
    /// The region.
    pub region: String,
}

/// A container that answered with an error, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    /// Where it happened.
    pub scene: Scene,
    /// What the container is called: `primary`, or the inference component.
    pub container: String,
    /// What happened.
    pub fault: Fault,
}

/// What a container did wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It answered with a status beyond 2xx.
    Answered {
        /// The status.
        status: u16,
        /// The body as text; what is no UTF-8 in it is replaced.
        body: String,
    },
    /// It answered, and the body broke off or was too long to be taken.
    BodyBrokeOff {
        /// The status.
        status: u16,
    },
    /// It did not answer in time.
    TimedOut,
    /// It broke the connection, or sent what is no HTTP.
    NoAnswer,
}

impl Fault {
    /// Whether nothing was heard of the container.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Fault::TimedOut | Fault::NoAnswer)
    }

    /// The container's status as SageMaker reports it: 0 for one that gave no answer, 500 for a good one that did not come
    /// whole.
    pub fn status(&self) -> u16 {
        match self {
            Fault::BodyBrokeOff { status: ..=399 } => 500,
            Fault::Answered { status, .. } | Fault::BodyBrokeOff { status } => *status,
            Fault::TimedOut | Fault::NoAnswer => 0,
        }
    }

    fn is_client_error(&self) -> bool {
        (400..500).contains(&self.status())
    }
}

impl ModelError {
    /// The status on the OpenAI-compatible path: the container's own where it is one of an error.
    pub(super) fn openai_status(&self) -> u16 {
        match &self.fault {
            Fault::Answered { status, .. } | Fault::BodyBrokeOff { status } if (400..600).contains(status) => *status,
            Fault::TimedOut => 504,
            Fault::Answered { .. } | Fault::BodyBrokeOff { .. } | Fault::NoAnswer => 502,
        }
    }

    /// The message, in AWS's words.
    pub fn message(&self) -> String {
        let Scene { endpoint, account, region } = &self.scene;
        let more = format!(
            "See https://{region}.console.aws.amazon.com/cloudwatch/home?region={region}#logEventViewer:group={} in \
             account {account} for more information.",
            self.log_group()
        );
        let (side, status) = (if self.fault.is_client_error() { "client" } else { "server" }, self.fault.status());
        let received = format!("Received {side} error ({status}) from {}", self.container);
        match &self.fault {
            Fault::Answered { .. } | Fault::TimedOut => {
                format!("{received} with message \"{}\". {more}", self.original_message())
            }
            Fault::BodyBrokeOff { .. } => format!("{received} and could not load the entire response body. {more}"),
            Fault::NoAnswer => format!(
                "Amazon SageMaker could not get a response from the {endpoint} endpoint. This can occur when CPU or \
                 memory utilization is high. To check your utilization, see Amazon CloudWatch. To fix this problem, use \
                 an instance type with more CPU capacity or memory."
            ),
        }
    }

    fn original_message(&self) -> String {
        match &self.fault {
            Fault::Answered { body, .. } => body.clone(),
            Fault::TimedOut => format!(
                "Your invocation timed out while waiting for a response from container {}. Review the latency metrics \
                 for each container in Amazon CloudWatch, resolve the issue, and try again.",
                self.container
            ),
            Fault::BodyBrokeOff { .. } | Fault::NoAnswer => String::new(),
        }
    }

    fn log_group(&self) -> String {
        format!("/aws/sagemaker/Endpoints/{}", self.scene.endpoint)
    }

    /// The body on the native paths.
    pub(super) fn native(&self) -> Value {
        let Scene { account, region, .. } = &self.scene;
        let side = if self.fault.is_client_error() { "CLIENT_ERROR_FROM_MODEL" } else { "SERVER_ERROR_FROM_MODEL" };
        json!({
            "ErrorCode": side,
            "LogStreamArn": format!("arn:aws:logs:{region}:{account}:log-group:{}", self.log_group()),
            "Message": self.message(),
            "OriginalMessage": self.original_message(),
            "OriginalStatusCode": self.fault.status(),
        })
    }
}
