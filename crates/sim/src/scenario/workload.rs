//! The `workload` part of scenario files.

use std::path::PathBuf;
use std::sync::Arc;

use isotherm_workload::{
    AgentSessions, Agents, Azure, ChatLengths, Chats, ColdBurst, Corpus, Documents, HotPrefix, InvalidWorkload,
    LongOutput, Mooncake, NoSharing, Tenants, TraceSource, Workload,
};
use serde::Deserialize;

use super::quantity::{Range, Span};

/// One kind of workload with its figures; their meaning is that of `isotherm_workload`'s types.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum WorkloadFile {
    Documents(DocumentsFile),
    Corpus {
        users: u32,
        think: Span,
        documents: u32,
        popularity: f64,
        document_tokens: Range,
        question_tokens: Range,
        output_tokens: Range,
    },
    NoSharing {
        users: u32,
        think: Span,
        prompt_tokens: Range,
        output_tokens: Range,
    },
    HotPrefix {
        share: f64,
        hot_tokens: u32,
        documents: DocumentsFile,
    },
    ColdBurst {
        size: u32,
        within: Span,
        every: Span,
        document_tokens: u32,
        question_tokens: Range,
        output_tokens: Range,
    },
    Chats {
        users: u32,
        think: Span,
        least_turns: u32,
        longest_answer: u32,
        longest_context: u32,
    },
    LongOutput {
        users: u32,
        think: Span,
        system_tokens: u32,
        turns: Range,
        question_tokens: Range,
        output_tokens: Range,
    },
    Tenants {
        users: u32,
        think: Span,
        tenants: u32,
        inequality: f64,
        system_tokens: u32,
        turns: Range,
        question_tokens: Range,
        output_tokens: Range,
    },
    Agents {
        users: u32,
        think: Span,
        shared_tools: bool,
        longest_think: Span,
        longest_context: u32,
    },
    Mooncake(MooncakeFile),
    Azure(AzureFile),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DocumentsFile {
    users: u32,
    think: Span,
    document_tokens: u32,
    questions: Range,
    question_tokens: Range,
    output_tokens: Range,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum MooncakeFile {
    Conversation,
    Synthetic,
    File(PathBuf),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum AzureFile {
    Code,
    Conversation,
    File(PathBuf),
}

impl DocumentsFile {
    fn into_documents(self) -> Documents {
        Documents {
            users: self.users,
            think: self.think.0,
            document_tokens: self.document_tokens,
            questions: self.questions.0,
            question_tokens: self.question_tokens.0,
            output_tokens: self.output_tokens.0,
        }
    }
}

impl WorkloadFile {
    pub(super) fn into_workload(self) -> Result<Workload, InvalidWorkload> {
        Ok(match self {
            WorkloadFile::Documents(documents) => documents.into_documents().into(),
            WorkloadFile::Corpus {
                users,
                think,
                documents,
                popularity,
                document_tokens,
                question_tokens,
                output_tokens,
            } => Workload::from(Corpus {
                users,
                think: think.0,
                documents,
                popularity,
                document_tokens: document_tokens.0,
                question_tokens: question_tokens.0,
                output_tokens: output_tokens.0,
            }),
            WorkloadFile::NoSharing { users, think, prompt_tokens, output_tokens } => Workload::from(NoSharing {
                users,
                think: think.0,
                prompt_tokens: prompt_tokens.0,
                output_tokens: output_tokens.0,
            }),
            WorkloadFile::HotPrefix { share, hot_tokens, documents } => {
                Workload::from(HotPrefix { share, hot_tokens, documents: documents.into_documents() })
            }
            WorkloadFile::ColdBurst { size, within, every, document_tokens, question_tokens, output_tokens } => {
                Workload::from(ColdBurst {
                    size,
                    within: within.0,
                    every: every.0,
                    document_tokens,
                    question_tokens: question_tokens.0,
                    output_tokens: output_tokens.0,
                })
            }
            WorkloadFile::Chats { users, think, least_turns, longest_answer, longest_context } => {
                let lengths = Arc::new(ChatLengths::share_gpt()?);
                Workload::from(Chats { users, think: think.0, lengths, least_turns, longest_answer, longest_context })
            }
            WorkloadFile::LongOutput { users, think, system_tokens, turns, question_tokens, output_tokens } => {
                Workload::from(LongOutput {
                    users,
                    think: think.0,
                    system_tokens,
                    turns: turns.0,
                    question_tokens: question_tokens.0,
                    output_tokens: output_tokens.0,
                })
            }
            WorkloadFile::Tenants {
                users,
                think,
                tenants,
                inequality,
                system_tokens,
                turns,
                question_tokens,
                output_tokens,
            } => Workload::from(Tenants {
                users,
                think: think.0,
                tenants,
                inequality,
                system_tokens,
                turns: turns.0,
                question_tokens: question_tokens.0,
                output_tokens: output_tokens.0,
            }),
            WorkloadFile::Agents { users, think, shared_tools, longest_think, longest_context } => {
                Workload::from(Agents {
                    users,
                    think: think.0,
                    sessions: Arc::new(AgentSessions::claude_code()?),
                    shared_tools,
                    longest_think: longest_think.0,
                    longest_context,
                })
            }
            WorkloadFile::Mooncake(trace) => Workload::from(match trace {
                MooncakeFile::Conversation => Mooncake::conversation(),
                MooncakeFile::Synthetic => Mooncake::synthetic(),
                MooncakeFile::File(path) => Mooncake { trace: TraceSource::file(path) },
            }),
            WorkloadFile::Azure(trace) => Workload::from(match trace {
                AzureFile::Code => Azure::code(),
                AzureFile::Conversation => Azure::conversation(),
                AzureFile::File(path) => Azure { trace: TraceSource::file(path) },
            }),
        })
    }
}

/// Changes how many users there are, where there are users; at least one stays.
pub(super) fn multiply_users(workload: &mut Workload, factor: f64) {
    let users = match workload {
        Workload::Documents(documents) => &mut documents.users,
        Workload::Corpus(corpus) => &mut corpus.users,
        Workload::NoSharing(no_sharing) => &mut no_sharing.users,
        Workload::HotPrefix(hot_prefix) => &mut hot_prefix.documents.users,
        Workload::Chats(chats) => &mut chats.users,
        Workload::LongOutput(long_output) => &mut long_output.users,
        Workload::Tenants(tenants) => &mut tenants.users,
        Workload::Agents(agents) => &mut agents.users,
        Workload::Recorded(log) => &mut log.users,
        Workload::ColdBurst(_) | Workload::Mooncake(_) | Workload::Azure(_) => return,
    };
    *users = ((f64::from(*users) * factor).round() as u32).max(1);
}
