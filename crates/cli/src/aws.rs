//! The services of AWS's that the router speaks: opened, wired to one another, and put behind one front door.

use std::sync::Arc;
use std::time::Duration;

use isotherm_autoscaling::{AutoScaling, Controller, OverControlPlane, Pace};
use isotherm_cloudwatch::{AlarmState, CloudWatch, Limits, Publisher};
use isotherm_config::Aws;
use isotherm_control::{Deployment, Deployments, FrontDoor, Services};
use isotherm_fleet::Fleet;
use isotherm_sagemaker::ControlPlane;
use isotherm_sagemaker::deployment::{AlarmSource, Reconciler, Reconciling, Settings};
use isotherm_sagemaker::providers::Providers;
use isotherm_sagemaker::records::EndpointRecord;
use isotherm_sagemaker::shapes::EndpointStatus;
use isotherm_store::Store;
use isotherm_wire::aws::AwsService;
use tokio::runtime::Handle;

use crate::emulated_instances::EmulatedInstances;
use crate::exit::Failure;

/// Everything behind the front door.
pub(crate) struct Cloud {
    front_door: Arc<FrontDoor>,
    control_plane: ControlPlane,
    reconciling: Reconciling,
}

impl Cloud {
    /// Opens the state that is kept and goes on with what it says; on the runtime that this is called on.
    pub(crate) fn open(aws: &Aws, fleet: &Fleet) -> Result<Cloud, Failure> {
        let store = Arc::new(Store::open(&aws.data_dir).map_err(|error| Failure::Running(error.to_string()))?);
        let cloudwatch = CloudWatch::open(Some(Arc::clone(&store)), Limits::default())
            .map_err(|error| Failure::running("alarms", error))?;
        let account = aws.account_id.as_str();
        let providers =
            Providers::new(&aws.providers, &aws.data_dir, |settings| Arc::new(EmulatedInstances::new(settings)));
        let settings = Settings {
            artifacts: Some(aws.async_dir.clone()),
            scaling_speed: aws.scaling_speed,
            ..Settings::of_account(account)
        };
        let alarms = Arc::new(Alarms(cloudwatch.clone()));
        let reconciling = Reconciler::new(Arc::clone(&store), fleet.clone(), providers, alarms, settings).spawn();
        tokio::spawn(Publisher::new(cloudwatch.clone(), fleet.clone(), account).run());
        let control_plane = ControlPlane::new(Arc::clone(&store), reconciling.deployer()).with_quotas(aws.quotas);
        let sagemaker: Arc<dyn AwsService> = Arc::new(control_plane.clone());
        let resources = Arc::new(OverControlPlane::new(Arc::clone(&sagemaker)));
        let autoscaling = AutoScaling::open(Some(store), cloudwatch.clone(), resources)
            .map_err(|error| Failure::running("scaling policies", error))?;
        tokio::spawn(Controller::new(autoscaling.clone(), Pace::default().faster(aws.scaling_speed)).run());
        let services = Services { sagemaker, cloudwatch: Arc::new(cloudwatch), autoscaling: Arc::new(autoscaling) };
        let front_door = Arc::new(FrontDoor::new(services, Handle::current()));
        Ok(Cloud { front_door, control_plane, reconciling })
    }

    /// Waits until what was in service before is routed to again, or has failed, but no longer than this.
    pub(crate) async fn back(&self, longest: Duration) {
        let missing = self.reconciling.back(longest).await;
        if !missing.is_empty() {
            tracing::warn!(endpoints = missing.join(", "), ?longest, "not back yet; their instances still start");
        }
    }

    /// What answers requests.
    pub(crate) fn front_door(&self) -> Arc<dyn AwsService> {
        Arc::clone(&self.front_door) as Arc<dyn AwsService>
    }

    /// What is under way with endpoints, for views of the router.
    pub(crate) fn deployments(&self) -> Arc<dyn Deployments> {
        Arc::new(UnderWay(self.control_plane.clone()))
    }

    /// Ends every instance that was started; what is kept says that they shall be, so the next life starts them again.
    pub(crate) async fn shutdown(self) {
        self.reconciling.shutdown().await;
    }
}

/// Endpoints that are not simply in service.
struct UnderWay(ControlPlane);

impl Deployments for UnderWay {
    fn under_way(&self) -> Vec<Deployment> {
        let endpoints = self.0.endpoints().unwrap_or_else(|error| {
            tracing::warn!(%error, "endpoints cannot be read for the overview");
            Vec::new()
        });
        let changing = endpoints.into_iter().filter(|one| one.status != EndpointStatus::InService);
        let deployment = |one: EndpointRecord| Deployment {
            status: one.status.as_str(),
            config: one.update().map_or(&one.serving, |update| &update.target).config_name.clone(),
            failure: one.failure_reason,
            endpoint: one.identity.name,
        };
        changing.map(deployment).collect()
    }
}

/// CloudWatch's alarms, as deployments ask for them.
struct Alarms(CloudWatch);

impl AlarmSource for Alarms {
    fn in_alarm(&self, account: &str, names: &[String]) -> Option<String> {
        let states = self.0.alarm_states(account, names.iter().map(String::as_str));
        let mut named = names.iter().zip(states);
        named.find(|(_, state)| *state == Some(AlarmState::Alarm)).map(|(name, _)| name.clone())
    }
}
