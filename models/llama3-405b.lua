-- llama3-405b.lua: Llama 3 405B (arXiv 2407.21783), 405,853,388,800 parameters.
return family "llama" {
  name = "llama3-405b", embed = 16384, ffn = 53248, layers = 126, heads = 128, kv_heads = 8,
}
