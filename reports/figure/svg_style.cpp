// SPDX-License-Identifier: Apache-2.0
// The themes of figures. The rules use no variables, because converters to PNG and PDF do not support them.
#include "reports/figure/svg.h"

namespace commfuse::reports {

std::string_view figure_style() {
  return R"(.cf-figure{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
.cf-figure text{fill:#1b1f24}
.cf-figure .cf-title{font-size:15px;font-weight:600}
.cf-figure .cf-strong{font-weight:600}
.cf-figure .cf-quiet{fill:#57606a}
.cf-figure .cf-mark{font-size:11px}
.cf-ground{fill:#ffffff}
.cf-grid{stroke:#d8dee4}
.cf-axis{stroke:#8c959f}
.cf-ink{fill:#1b1f24}.cf-muted{fill:#8c959f}
.cf-essential{fill:#0072b2}.cf-local{fill:#009e73}.cf-communication{fill:#e69f00}.cf-exposed{fill:#d55e00}
.cf-figure .cf-on-essential,.cf-figure .cf-on-ink{fill:#ffffff}
.cf-figure .cf-on-local,.cf-figure .cf-on-communication,.cf-figure .cf-on-muted{fill:#101418}
.cf-bar{stroke:#ffffff;stroke-width:.75}
.cf-hatch{stroke:#d55e00;stroke-width:2}
.cf-hatched{stroke:#d55e00;stroke-width:1}
.cf-halo{stroke:#ffffff;stroke-width:4;stroke-linejoin:round;paint-order:stroke}
.cf-line{fill:none;stroke-width:1.5}
.cf-line-ink{stroke:#1b1f24}.cf-line-muted{stroke:#8c959f}.cf-line-essential{stroke:#0072b2}
.cf-line-local{stroke:#009e73}.cf-line-communication{stroke:#e69f00}.cf-line-exposed{stroke:#d55e00}
.cf-band{opacity:.22}.cf-point{stroke:#ffffff;stroke-width:.75}
.cf-first{fill:#0072b2}.cf-second{fill:#d55e00}.cf-third{fill:#009e73}.cf-fourth{fill:#cc79a7}.cf-fifth{fill:#e69f00}.cf-sixth{fill:#56b4e9}.cf-seventh{fill:#6b7785}
.cf-line-first{stroke:#0072b2}.cf-line-second{stroke:#d55e00}.cf-line-third{stroke:#009e73}.cf-line-fourth{stroke:#cc79a7}.cf-line-fifth{stroke:#e69f00}.cf-line-sixth{stroke:#56b4e9}.cf-line-seventh{stroke:#6b7785}
.cf-figure .cf-on-first,.cf-figure .cf-on-seventh{fill:#ffffff}
.cf-figure .cf-on-second,.cf-figure .cf-on-third,.cf-figure .cf-on-fourth,.cf-figure .cf-on-fifth,.cf-figure .cf-on-sixth{fill:#101418}
.cf-tie{fill:#c9cfd6}
.cf-cell{stroke:#ffffff;stroke-width:1}
.cf-frame{fill:none;stroke:#1b1f24;stroke-width:1.5;stroke-dasharray:3 2}
.cf-nothing{fill:#f3f4f6}
.cf-cross{stroke:#8c959f}
.cf-s0{fill:#eef4fb}.cf-s1{fill:#d6e6f4}.cf-s2{fill:#b8d5ea}.cf-s3{fill:#92c0df}.cf-s4{fill:#68a8d3}
.cf-s5{fill:#4a96c9}.cf-s6{fill:#2676b0}.cf-s7{fill:#125b94}.cf-s8{fill:#083f73}
.cf-d0{fill:#a84600}.cf-d1{fill:#e07f3a}.cf-d2{fill:#f0b384}.cf-d3{fill:#f8dfcc}.cf-d4{fill:#eceff2}
.cf-d5{fill:#cfe0f0}.cf-d6{fill:#8fbbdd}.cf-d7{fill:#4a96c9}.cf-d8{fill:#125b94}
.cf-figure .cf-on-s6,.cf-figure .cf-on-s7,.cf-figure .cf-on-s8,.cf-figure .cf-on-d0,.cf-figure .cf-on-d8{fill:#ffffff}
@media screen and (prefers-color-scheme:dark){
.cf-figure text{fill:#e6edf3}
.cf-figure .cf-quiet{fill:#9aa7b4}
.cf-ground{fill:#14181d}
.cf-grid{stroke:#2b333c}
.cf-axis{stroke:#6b7785}
.cf-ink{fill:#e6edf3}.cf-muted{fill:#6b7785}
.cf-essential{fill:#56b4e9}.cf-local{fill:#2bc296}
.cf-figure .cf-on-essential,.cf-figure .cf-on-local,.cf-figure .cf-on-communication,.cf-figure .cf-on-ink{fill:#101418}
.cf-bar,.cf-cell{stroke:#14181d}
.cf-hatch,.cf-hatched{stroke:#ff8a3d}
.cf-exposed{fill:#ff8a3d}
.cf-halo{stroke:#14181d}
.cf-line-ink{stroke:#e6edf3}.cf-line-muted{stroke:#6b7785}.cf-line-essential{stroke:#56b4e9}
.cf-line-local{stroke:#2bc296}.cf-line-exposed{stroke:#ff8a3d}
.cf-point{stroke:#14181d}
.cf-first{fill:#56b4e9}.cf-second{fill:#ff8a3d}.cf-third{fill:#2bc296}.cf-fourth{fill:#e79fc4}.cf-fifth{fill:#f0c040}.cf-sixth{fill:#a9cdec}.cf-seventh{fill:#9aa7b4}
.cf-line-first{stroke:#56b4e9}.cf-line-second{stroke:#ff8a3d}.cf-line-third{stroke:#2bc296}.cf-line-fourth{stroke:#e79fc4}.cf-line-fifth{stroke:#f0c040}.cf-line-sixth{stroke:#a9cdec}.cf-line-seventh{stroke:#9aa7b4}
.cf-figure .cf-on-first,.cf-figure .cf-on-seventh{fill:#101418}
.cf-tie{fill:#49535e}
.cf-frame{stroke:#e6edf3}
.cf-nothing{fill:#1c2229}
.cf-cross{stroke:#6b7785}
.cf-s0{fill:#16222f}.cf-s1{fill:#17304a}.cf-s2{fill:#1a4268}.cf-s3{fill:#1f5687}.cf-s4{fill:#2b6ca6}
.cf-s5{fill:#4a8cc4}.cf-s6{fill:#6fa8d8}.cf-s7{fill:#97c1e5}.cf-s8{fill:#c8e0f4}
.cf-d0{fill:#ffb07a}.cf-d1{fill:#d9772f}.cf-d2{fill:#8f4a1c}.cf-d3{fill:#4d2f1d}.cf-d4{fill:#2a3138}
.cf-d5{fill:#1c3850}.cf-d6{fill:#1f5687}.cf-d7{fill:#5a9bd3}.cf-d8{fill:#a9cdec}
.cf-figure .cf-on-s5,.cf-figure .cf-on-s6,.cf-figure .cf-on-s7,.cf-figure .cf-on-s8,.cf-figure .cf-on-d0,
.cf-figure .cf-on-d1,.cf-figure .cf-on-d7,.cf-figure .cf-on-d8{fill:#101418}
}
)";
}

}  // namespace commfuse::reports
