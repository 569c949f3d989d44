//! The `workload` part of scenario files.

use isotherm_workload::{Documents, NoSharing, Workload};
use serde::Deserialize;

use super::quantity::{Range, Span};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum WorkloadFile {
    Documents {
        users: u32,
        think: Span,
        document_tokens: u32,
        questions: Range,
        question_tokens: Range,
        output_tokens: Range,
    },
    NoSharing {
        users: u32,
        think: Span,
        prompt_tokens: Range,
        output_tokens: Range,
    },
}

impl WorkloadFile {
    pub(super) fn into_workload(self) -> Workload {
        match self {
            WorkloadFile::Documents { users, think, document_tokens, questions, question_tokens, output_tokens } => {
                Workload::from(Documents {
                    users,
                    think: think.0,
                    document_tokens,
                    questions: questions.0,
                    question_tokens: question_tokens.0,
                    output_tokens: output_tokens.0,
                })
            }
            WorkloadFile::NoSharing { users, think, prompt_tokens, output_tokens } => Workload::from(NoSharing {
                users,
                think: think.0,
                prompt_tokens: prompt_tokens.0,
                output_tokens: output_tokens.0,
            }),
        }
    }
}
