-- llama3-8b.lua: Llama 3 8B (arXiv 2407.21783), 8,030,261,248 parameters.
return family "llama" {
  name = "llama3-8b", embed = 4096, ffn = 14336, layers = 32, heads = 32, kv_heads = 8,
}
