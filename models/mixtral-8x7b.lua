-- mixtral-8x7b.lua: Mixtral 8x7B (arXiv 2401.04088), 46,702,792,704 parameters.
return family "mixtral" { name = "mixtral-8x7b", experts = 8, top = 2, expert_ffn = 14336 }
