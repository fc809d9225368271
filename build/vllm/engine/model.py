"""Writes a Llama of 0.1 million random weights and a tokenizer of one token a byte into the folder argv[1].

Nothing is downloaded. A text of n ASCII characters is n tokens, so the sizes of prompts are known exactly.
"""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

folder = sys.argv[1]

alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
roles = ["<|system|>", "<|user|>", "<|assistant|>"]
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, bos_token="<|bos|>", eos_token="<|end|>", additional_special_tokens=roles
)
fast.chat_template = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
fast.save_pretrained(folder)

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=320,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    head_dim=32,
    max_position_embeddings=8192,
    bos_token_id=fast.bos_token_id,
    eos_token_id=fast.eos_token_id,
    dtype="bfloat16",
)
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
