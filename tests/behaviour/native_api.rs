//! SageMaker's container path `/invocations`, and what `explain` says of short texts.
