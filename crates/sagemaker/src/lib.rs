//! SageMaker's control plane: its resources, their constraints, how endpoints come to be, change and go.
