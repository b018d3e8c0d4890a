-- llama-small.lua: a Llama to train here: 4 layers, 256 wide, 8 query and 4 key/value heads, bytes as tokens.
return family "llama" {
  name = "llama-small", embed = 256, ffn = 688, layers = 4, heads = 8, kv_heads = 4, head = 32, vocab = 256, seq = 128,
  rope_theta = 1e4,
}
