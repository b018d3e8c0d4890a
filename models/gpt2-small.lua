-- gpt2-small.lua: a GPT-2 to train here: 4 layers, 256 wide, 4 heads, bytes as tokens.
return family "gpt2" {
  name = "gpt2-small", embed = 256, ffn = 1024, layers = 4, heads = 4, vocab = 256, seq = 128, positions = 1024,
}
