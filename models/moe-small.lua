-- moe-small.lua: a mixture of experts to train here: 8 experts, top 2, one shared, 4 layers, 256 wide, bytes as tokens.
return family "mixtral" {
  name = "moe-small", embed = 256, layers = 4, vocab = 256, heads = 8, kv_heads = 4, head = 32, seq = 128, rope_theta = 1e4,
  experts = 8, top = 2, expert_ffn = 256, shared_ffn = 256, aux = 0.01,
}
