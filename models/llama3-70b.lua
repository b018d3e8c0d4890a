-- llama3-70b.lua: Llama 3 70B (arXiv 2407.21783), 70,553,706,496 parameters.
return family "llama" {
  name = "llama3-70b", embed = 8192, ffn = 28672, layers = 80, heads = 64, kv_heads = 8,
}
