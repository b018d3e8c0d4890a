-- mla-small.lua: latent attention and experts to train here: 4 layers (the first dense), 256 wide, bytes as tokens.
return family "deepseek" {
  name = "mla-small", embed = 256, ffn = 688, layers = 4, vocab = 256, heads = 8, seq = 128,
  q_rank = 96, kv_rank = 64, nope = 32, rope = 16, v_head = 32,
  experts = 8, top = 2, expert_ffn = 256, shared_ffn = 256, dense_layers = 1, groups = 0, top_groups = 0,
}
