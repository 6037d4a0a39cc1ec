// SPDX-License-Identifier: Apache-2.0
#include "reports/html/page_style.h"

namespace commfuse::reports {

std::string_view page_style() {
  return R"(:root{color-scheme:light dark;--ground:#ffffff;--panel:#f6f8fa;--ink:#1b1f24;--quiet:#57606a;--rule:#d8dee4;
--link:#0a5ea8;--win:#e3f0fa;--win-ink:#0b3d66}
@media screen and (prefers-color-scheme:dark){:root{--ground:#14181d;--panel:#1c2229;--ink:#e6edf3;--quiet:#9aa7b4;
--rule:#2f3842;--link:#7cc0f5;--win:#17304a;--win-ink:#d6eafa}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
body *{overflow-wrap:anywhere}
.page{max-width:1160px;margin:0 auto;padding:28px 20px 48px}
a{color:var(--link)}
a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:3px solid var(--link);outline-offset:2px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px}
h2{font-size:19px;line-height:1.3;margin:44px 0 10px;padding-top:14px;border-top:1px solid var(--rule)}
h3{font-size:16px;margin:22px 0 6px}
p{margin:0 0 10px;max-width:76ch}
.quiet,.note{color:var(--quiet)}
.note{font-size:14px}
.lead{font-size:19px;line-height:1.5;margin:18px 0 20px;max-width:72ch}
.skip{position:absolute;left:-9999px}
.skip:focus{position:static;display:inline-block;padding:6px 10px;margin-bottom:8px}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:0;padding:0;font-size:14px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(210px,1fr));gap:12px;margin:0 0 18px}
.tile{background:var(--panel);border:1px solid var(--rule);border-radius:8px;padding:12px 14px}
.tiles dt{font-size:13px;color:var(--quiet)}
.tiles dd{margin:0}
.tiles .value{font-size:24px;font-weight:600;line-height:1.3}
.tiles .about{font-size:13px;color:var(--quiet);line-height:1.4}
.scroll{overflow-x:auto;max-width:100%}
figure{margin:0 0 14px;border:1px solid var(--rule);border-radius:8px;overflow:hidden}
figcaption{padding:12px 14px 4px;font-size:15px;font-weight:600;line-height:1.4}
figure[data-figure] figcaption,figure[data-timeline] figcaption{display:flex;justify-content:space-between;gap:14px;
align-items:flex-start}
.tools{display:flex;gap:4px;flex:none;font-weight:400}
button{font:inherit;font-size:13px;line-height:1.4;color:var(--ink);background:var(--panel);border:1px solid var(--rule);
border-radius:6px;padding:2px 9px;cursor:pointer}
button:hover{border-color:var(--link)}
button:disabled{color:var(--quiet);cursor:default;border-color:var(--rule)}
button[aria-pressed="true"]{background:var(--win);color:var(--win-ink);border-color:var(--link)}
button:focus-visible,input:focus-visible,canvas:focus-visible,.cf-live:focus-visible{outline:3px solid var(--link);outline-offset:1px}
.cf-live{display:none;position:relative}
.live .cf-live{display:block}
.live .cf-static{display:none}
.cf-live .canvas{width:100%}
canvas.timeline{display:block;width:100%;touch-action:pan-y;cursor:crosshair}
.tip{position:absolute;z-index:3;pointer-events:none;max-width:420px;background:var(--ground);border:1px solid var(--quiet);
border-radius:6px;padding:6px 10px;font-size:13px;line-height:1.45;box-shadow:0 2px 8px rgba(0,0,0,.25)}
.tip div:first-child{font-weight:600}
.tip div:last-child{color:var(--quiet)}
ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:2px 14px 0;padding:0;font-size:13px;color:var(--quiet)}
ul.legend li{display:flex;align-items:center;gap:6px}
ul.legend svg{flex:none}
.strip{margin:0 14px 10px;font-size:12px;color:var(--quiet)}
.strip svg{display:block}
.strip-words{display:flex;justify-content:space-between;width:234px}
.table-tools{flex-wrap:wrap;align-items:center;gap:8px;margin:0 0 8px;font-size:14px}
.table-tools input{font:inherit;font-size:14px;color:var(--ink);background:var(--ground);border:1px solid var(--rule);border-radius:6px;
padding:3px 8px;max-width:100%}
table.grid td.words,table.grid th.words{text-align:left}
table.grid th button{border:0;background:none;padding:0;font-weight:600;color:var(--link)}
table.grid th[aria-sort="ascending"] button::after{content:" \25b2";font-size:10px}
table.grid th[aria-sort="descending"] button::after{content:" \25bc";font-size:10px}
.replaced{display:none}
.licences{max-height:320px;overflow:auto}
svg.cf-figure{display:block;max-width:100%;height:auto}
.wide svg.cf-figure{width:100%;min-width:820px}
.maps{display:flex;flex-wrap:wrap;gap:14px;align-items:flex-start}
.maps figure{flex:0 1 540px;min-width:0;max-width:100%;margin:0;padding-bottom:4px}
table{border-collapse:collapse;width:100%;font-size:13px;line-height:1.4;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:0 0 8px;font-weight:600;font-size:14px}
th,td{padding:4px 8px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule);overflow-wrap:normal}
thead th{vertical-align:bottom;font-weight:600;border-bottom:2px solid var(--rule)}
thead th:first-child,tbody th{text-align:left}
tbody th{font-weight:400}
.unit{display:block;font-weight:400;color:var(--quiet);font-size:12px}
.point th{padding-top:16px;font-weight:600;white-space:normal}
.which{position:sticky;left:8px;display:inline-block}
.verdict{font-weight:400;color:var(--quiet);margin-left:8px}
.mark{display:inline-block;width:18px}
tbody th[scope="row"]{position:sticky;left:0;background:var(--ground)}
tbody .fastest th[scope="row"],.fastest td{font-weight:700;background:var(--win);color:var(--win-ink)}
td.none{text-align:left;color:var(--quiet)}
dl.words{margin:0;display:grid;gap:2px}
dl.words div{display:grid;grid-template-columns:170px minmax(0,1fr);gap:12px;padding:4px 6px;border-radius:6px}
dl.words div:target{background:var(--win)}
dl.words dt{font-weight:600}
dl.words dd{margin:0;max-width:76ch}
pre{background:var(--panel);border:1px solid var(--rule);border-radius:8px;padding:12px 14px;margin:0 0 10px;
white-space:pre-wrap;font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:13px}
details{margin:8px 0}
summary{cursor:pointer;color:var(--link)}
footer{margin-top:44px;padding-top:12px;border-top:1px solid var(--rule);font-size:13px;color:var(--quiet)}
@media (max-width:640px){.page{padding:18px 12px 32px}h1{font-size:22px}.lead{font-size:17px}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr))}.tiles .value{font-size:19px}
dl.words div{grid-template-columns:1fr;gap:0}}
@media print{.live .cf-live,.tools,#all-rows{display:none}.live .cf-static,.replaced{display:block}@page{size:A4 landscape;margin:12mm}body{font-size:12px}.page{max-width:none;padding:0}nav,.skip{display:none}
.scroll{overflow:visible}.wide svg.cf-figure{min-width:0}table{font-size:10px}th,td{padding:2px 5px}
figure,.tile,tbody,dl.words div{break-inside:avoid}h2,h3,caption,section .quiet{break-after:avoid}.maps figure{flex:0 1 48%}a{color:inherit;text-decoration:none}
.which{position:static}}
)";
}

}  // namespace commfuse::reports
