-- deepseek-v3.lua: DeepSeek-V3 (arXiv 2412.19437) without its extra prediction layer: 671,026,419,200 parameters, 58 x 256 of them router biases.
return family "deepseek" { name = "deepseek-v3" }
