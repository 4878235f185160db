"""Writes a small model of the llama architecture as GGUF, and runs llama-bench on it with these arguments.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import os
import struct
import sys
import tempfile

EMBEDDING, LAYERS, HEADS, INNER, CONTEXT = 256, 4, 4, 512, 512
UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5
F16, ALIGNMENT = 1, 32
TOKENS = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
TYPES = [2, 3, 3] + [6] * 256


def text(value):
    """Encodes a string."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    """Encodes a pair of key and value."""
    forms = {UINT32: "<I", FLOAT32: "<f"}
    data = text(value) if kind == STRING else struct.pack(forms[kind], value)
    return text(key) + struct.pack("<I", kind) + data


def listed(key, kind, values):
    """Encodes a pair of key and array."""
    forms = {STRING: text, FLOAT32: lambda v: struct.pack("<f", v), INT32: lambda v: struct.pack("<i", v)}
    return text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + b"".join(map(forms[kind], values))


def tensors():
    """Returns the names and shapes of the weights; vectors are float32, matrices float16."""
    yield "token_embd.weight", (EMBEDDING, len(TOKENS))
    yield "output_norm.weight", (EMBEDDING,)
    yield "output.weight", (EMBEDDING, len(TOKENS))
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}.weight", (EMBEDDING,)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{layer}.{name}.weight", (EMBEDDING, EMBEDDING)
        yield f"blk.{layer}.ffn_gate.weight", (EMBEDDING, INNER)
        yield f"blk.{layer}.ffn_up.weight", (EMBEDDING, INNER)
        yield f"blk.{layer}.ffn_down.weight", (INNER, EMBEDDING)


def write(file):
    """Writes the model."""
    pairs = [
        entry("general.architecture", STRING, "llama"),
        entry("general.name", STRING, "zeros"),
        entry("llama.context_length", UINT32, CONTEXT),
        entry("llama.embedding_length", UINT32, EMBEDDING),
        entry("llama.block_count", UINT32, LAYERS),
        entry("llama.feed_forward_length", UINT32, INNER),
        entry("llama.attention.head_count", UINT32, HEADS),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry("llama.rope.dimension_count", UINT32, EMBEDDING // HEADS),
        entry("llama.vocab_size", UINT32, len(TOKENS)),
        entry("tokenizer.ggml.model", STRING, "llama"),
        listed("tokenizer.ggml.tokens", STRING, TOKENS),
        listed("tokenizer.ggml.scores", FLOAT32, [0.0] * len(TOKENS)),
        listed("tokenizer.ggml.token_type", INT32, TYPES),
    ]
    weights, offset = list(tensors()), 0
    head = b"GGUF" + struct.pack("<IQQ", 3, len(weights), len(pairs)) + b"".join(pairs)
    sizes = []
    for name, shape in weights:
        size = 4 * shape[0] if len(shape) == 1 else 2 * shape[0] * shape[1]
        kind = 0 if len(shape) == 1 else F16
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", kind, offset)
        sizes.append(size)
        offset += size + -size % ALIGNMENT
    file.write(head + bytes(-len(head) % ALIGNMENT))
    # Weights of 0 will do: kernels have no effect.
    for size in sizes:
        file.write(bytes(size + -size % ALIGNMENT))


with tempfile.NamedTemporaryFile(suffix=".gguf") as model:
    write(model)
    model.flush()
    status = os.spawnv(os.P_WAIT, "/usr/bin/llama-bench", ["llama-bench", "-m", model.name, *sys.argv[1:]])
sys.exit(status)
