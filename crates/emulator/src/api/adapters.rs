//! `/v1/load_lora_adapter` and `/v1/unload_lora_adapter`, as vLLM has them where adapters may change while it runs.

use crate::emulator::Emulator;
use crate::failure::Failure;
use crate::fields::Fields;
use crate::reply::{self, Reply};

/// Serves an adapter from now on; the path that it would be read from is taken unread.
pub(crate) fn load(emulator: &Emulator, fields: &Fields<'_>) -> Result<Reply, Failure> {
    let (name, path): (String, String) = (fields.required("lora_name")?, fields.required("lora_path")?);
    if name.is_empty() || path.is_empty() {
        return Err(Failure::Malformed("Both 'lora_name' and 'lora_path' must be provided.".to_owned()));
    }
    if !emulator.add_adapter(&name) {
        return Err(Failure::Malformed(format!("The lora adapter '{name}' has already been loaded.")));
    }
    Ok(reply::text(format!("Success: LoRA adapter '{name}' added successfully.")))
}

/// Serves an adapter no more; requests under way end undisturbed.
pub(crate) fn unload(emulator: &Emulator, fields: &Fields<'_>) -> Result<Reply, Failure> {
    let name: String = fields.required("lora_name")?;
    if !emulator.remove_adapter(&name) {
        return Err(Failure::UnknownAdapter(name));
    }
    Ok(reply::text(format!("Success: LoRA adapter '{name}' removed successfully.")))
}
