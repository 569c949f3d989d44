//! The control plane's resources as they lie in the store.
//!
//! Operations write what should be (a new record, or a [`Transition`] on an old one) and wake whoever makes it so;
//! that one writes back what is. Both read a record and write it in one transaction, so neither loses the other's
//! word. An endpoint's record holds its configuration and models as they were when it was created or updated:
//! deleting those later does not change what runs.

use std::num::NonZeroU32;

use isotherm_core::StrategyName;
use isotherm_store::{StoreError, Table, Transaction};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::arn::ResourceKind;
use crate::routing::{self, Keying};
use crate::shapes::{
    ComponentDeploymentConfig, ComponentSpecification, DeployedImage, DeploymentConfig, EndpointConfigSettings,
    EndpointStatus, InferenceComponentStatus, ModelSettings, PlacementStatus, ProductionVariant, Serverless, Tag,
    Timestamp, VariantStatus,
};

/// Models by [`key`].
pub const MODELS: Table<ModelRecord> = Table::named("models");
/// Endpoint configurations by [`key`].
pub const ENDPOINT_CONFIGS: Table<EndpointConfigRecord> = Table::named("endpoint-configs");
/// Endpoints by [`key`].
pub const ENDPOINTS: Table<EndpointRecord> = Table::named("endpoints");
/// Inference components by [`key`].
pub const INFERENCE_COMPONENTS: Table<InferenceComponentRecord> = Table::named("inference-components");
/// Tags by [`tags_key`], in the order in which they were added.
pub const TAGS: Table<Vec<Tag>> = Table::named("tags");

/// A resource's key in its table: names are unique in an account, whatever their case.
pub fn key(account: &str, name: &str) -> String {
    format!("{account}/{}", name.to_ascii_lowercase())
}

/// The key of a resource's tags; `kind` as in its ARN (`endpoint`).
pub fn tags_key(account: &str, kind: &str, name: &str) -> String {
    format!("{account}/{kind}/{}", name.to_ascii_lowercase())
}

/// Takes the record of an endpoint that is gone away, and its tags.
///
/// # Errors
///
/// Those of the store.
pub fn remove_endpoint(transaction: &Transaction, endpoint: &EndpointRecord) -> Result<(), StoreError> {
    let Identity { account, name, .. } = &endpoint.identity;
    transaction.remove(&ENDPOINTS, &endpoint.key())?;
    transaction.remove(&TAGS, &tags_key(account, ResourceKind::Endpoint.in_arn(), name))?;
    Ok(())
}

/// Takes the record of an inference component that is gone away, and its tags.
///
/// # Errors
///
/// Those of the store.
pub fn remove_inference_component(
    transaction: &Transaction,
    component: &InferenceComponentRecord,
) -> Result<(), StoreError> {
    let Identity { account, name, .. } = &component.identity;
    transaction.remove(&INFERENCE_COMPONENTS, &component.key())?;
    transaction.remove(&TAGS, &tags_key(account, ResourceKind::InferenceComponent.in_arn(), name))?;
    Ok(())
}

/// What every resource has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The account that it belongs to, twelve digits.
    pub account: String,
    /// The region that it was created in.
    pub region: String,
    /// Its name, as typed.
    pub name: String,
    /// Its ARN; the name in it is in lower case.
    pub arn: String,
    /// When it was created.
    pub created_at: Timestamp,
}

impl Identity {
    /// Its key in its table.
    pub fn key(&self) -> String {
        key(&self.account, &self.name)
    }
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// Who it is.
    pub identity: Identity,
    /// What it is made of.
    pub settings: ModelSettings,
}

/// An endpoint configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointConfigRecord {
    /// Who it is.
    pub identity: Identity,
    /// What holds for all variants.
    pub settings: EndpointConfigSettings,
    /// Those that answer.
    pub variants: Vec<ProductionVariant>,
    /// Those that get a copy of requests and whose answers are dropped.
    pub shadow_variants: Vec<ProductionVariant>,
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointRecord {
    /// Who it is.
    pub identity: Identity,
    /// When an operation or a transition changed it last.
    pub modified_at: Timestamp,
    /// Where it is in its life.
    pub status: EndpointStatus,
    /// Why it is where it is, for a person to act on.
    pub failure_reason: Option<String>,
    /// What serves; while it is being created, what will.
    pub serving: Deployed,
    /// What is under way; `None`: nothing is to be done.
    pub transition: Option<Transition>,
    /// How the last update went about.
    pub last_deployment_config: Option<DeploymentConfig>,
    /// What an update that failed both ways has left, which serves beside the rest until the next change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_over: Option<Box<LeftOver<Deployed>>>,
}

/// What an update was to bring that could neither be done nor taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOver<T> {
    /// What was to serve, and does in part.
    pub target: T,
    /// The revision of the instances or copies that the update made.
    pub revision: u64,
}

impl EndpointRecord {
    /// Its key in its table.
    pub fn key(&self) -> String {
        self.identity.key()
    }

    /// The update under way, if one is.
    pub fn update(&self) -> Option<&Update> {
        match &self.transition {
            Some(Transition::Update(update)) => Some(update),
            _ => None,
        }
    }
}

/// A configuration on instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployed {
    /// The endpoint configuration's name.
    pub config_name: String,
    /// What holds for all its variants.
    pub settings: EndpointConfigSettings,
    /// The models that its variants name.
    pub models: Vec<ModelRecord>,
    /// Those that answer.
    pub variants: Vec<VariantRecord>,
    /// Those that get a copy of requests.
    pub shadow_variants: Vec<VariantRecord>,
}

impl Deployed {
    /// The model of this name.
    pub fn model(&self, name: &str) -> Option<&ModelRecord> {
        self.models.iter().find(|model| model.identity.name.eq_ignore_ascii_case(name))
    }

    /// Says in the log which variants run with another strategy than the one that was asked for.
    pub(crate) fn say_what_runs_otherwise(&self, endpoint: &str) {
        for variant in self.all_variants() {
            if let Some(otherwise) = routing::runs_otherwise(variant) {
                warn!(endpoint, variant = variant.config.variant_name, "{otherwise}");
            }
        }
    }

    /// Whether its variants hold inference components instead of a model.
    pub fn has_components(&self) -> bool {
        self.variants.iter().all(|variant| variant.config.model_name.is_none())
    }

    /// How many instances the variants that answer should have, all together.
    pub fn desired_instances(&self) -> u32 {
        self.variants.iter().fold(0, |sum, variant| sum.saturating_add(variant.desired_instance_count))
    }

    /// The variants that answer, then the shadows.
    pub fn all_variants(&self) -> impl Iterator<Item = &VariantRecord> {
        self.variants.iter().chain(&self.shadow_variants)
    }
}

/// A variant on instances: what is wanted, and what is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantRecord {
    /// As configured.
    pub config: ProductionVariant,
    /// A strategy of Isotherm's own that was asked for by tag or environment; beats the configured one.
    pub strategy: Option<StrategyName>,
    /// What tags ask prefix keys to be made of.
    #[serde(default)]
    pub keying: Keying,
    /// The most requests in flight on each of its instances that was asked for by tag or environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<NonZeroU32>,
    /// The share of traffic that it should get.
    pub desired_weight: f64,
    /// The share that it gets.
    pub current_weight: f64,
    /// How many instances it should have.
    pub desired_instance_count: u32,
    /// How many are in service.
    pub current_instance_count: u32,
    /// The capacity that a serverless variant should have.
    pub desired_serverless: Option<Serverless>,
    /// The capacity that a serverless variant has.
    pub current_serverless: Option<Serverless>,
    /// What happens to it; empty: nothing.
    pub status: Vec<VariantStatus>,
    /// What runs on its instances.
    pub deployed_images: Vec<DeployedImage>,
}

/// What is under way with an endpoint. It stays in the record until it is done, so that a restart goes on with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Transition {
    /// Its first instances come.
    Create {
        /// Since when.
        started_at: Timestamp,
    },
    /// It changes to another configuration.
    Update(Box<Update>),
    /// Desired weights or numbers of instances in [`EndpointRecord::serving`] changed.
    Adjust {
        /// Since when.
        started_at: Timestamp,
    },
    /// Everything of it goes, then the record ([`remove_endpoint`]). It may take the place of any other transition.
    Delete {
        /// Since when.
        started_at: Timestamp,
    },
}

/// A change from one configuration to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// What will serve: its variants' current weights and counts are of the new instances.
    pub target: Deployed,
    /// How; `None` is blue/green, all at once.
    pub deployment_config: Option<DeploymentConfig>,
    /// Since when.
    pub started_at: Timestamp,
}

/// An inference component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InferenceComponentRecord {
    /// Who it is.
    pub identity: Identity,
    /// When an operation or a transition changed it last.
    pub modified_at: Timestamp,
    /// The endpoint that hosts it, as that is named.
    pub endpoint_name: String,
    /// The endpoint's ARN.
    pub endpoint_arn: String,
    /// The variant that hosts it; `None` only for adapters, which lie where their base component does.
    pub variant_name: Option<String>,
    /// Where it is in its life.
    pub status: InferenceComponentStatus,
    /// Why it is where it is, for a person to act on.
    pub failure_reason: Option<String>,
    /// What serves; while it is being created, what will.
    pub serving: ComponentPlan,
    /// How many copies it should have; 0 for adapters.
    pub desired_copy_count: u32,
    /// How many are in service.
    pub current_copy_count: u32,
    /// Where they lie.
    pub placement: Vec<PlacementStatus>,
    /// What runs in its containers.
    pub deployed_image: Option<DeployedImage>,
    /// What is under way; `None`: nothing is to be done.
    pub transition: Option<ComponentTransition>,
    /// How the last update went about.
    pub last_deployment_config: Option<ComponentDeploymentConfig>,
    /// What an update that failed both ways has left, which serves beside the rest until the next change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_over: Option<Box<LeftOver<ComponentPlan>>>,
}

impl InferenceComponentRecord {
    /// Its key in its table.
    pub fn key(&self) -> String {
        self.identity.key()
    }

    /// The base component that this one is an adapter for, if it is one.
    pub fn base(&self) -> Option<&str> {
        self.serving.specifications.first()?.base_inference_component_name.as_deref()
    }
}

/// What an inference component runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComponentPlan {
    /// One, or one for each kind of instance.
    pub specifications: Vec<ComponentSpecification>,
    /// Whether it was given as a list (`Specifications`), and is told so.
    pub given_as_list: bool,
    /// The models that the specifications name.
    pub models: Vec<ModelRecord>,
    /// A strategy of Isotherm's own that the container's environment asks for.
    pub strategy: Option<StrategyName>,
    /// The most requests in flight on each copy that the container's environment asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<NonZeroU32>,
}

impl ComponentPlan {
    /// The model of this name.
    pub fn model(&self, name: &str) -> Option<&ModelRecord> {
        self.models.iter().find(|model| model.identity.name.eq_ignore_ascii_case(name))
    }

    /// The image that runs: the container's own, else that of the model.
    pub fn image(&self) -> Option<&str> {
        let first = self.specifications.first()?;
        let own = first.container.as_ref().and_then(|container| container.image.as_deref());
        own.or_else(|| self.model(first.model_name.as_deref()?)?.settings.container()?.image.as_deref())
    }
}

/// What is under way with an inference component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ComponentTransition {
    /// Its first copies come.
    Create {
        /// Since when.
        started_at: Timestamp,
    },
    /// It changes to another specification.
    Update {
        /// What will serve.
        target: Box<ComponentPlan>,
        /// How; `None`: as many copies at a time as fit.
        deployment_config: Option<ComponentDeploymentConfig>,
        /// Since when.
        started_at: Timestamp,
    },
    /// [`InferenceComponentRecord::desired_copy_count`] changed.
    Scale {
        /// Since when.
        started_at: Timestamp,
    },
    /// Its copies go, then the record ([`remove_inference_component`]). It may take the place of any other transition.
    Delete {
        /// Since when.
        started_at: Timestamp,
    },
}
