/** Light and dark as the reader has it; colours never say anything that words don't. */
export const STYLE = `
:root{color-scheme:light dark;--ink:#1c1f23;--paper:#fff;--soft:#667;--line:#d5d8de;--good:#2e7d43;--bad:#b3261e;--dull:#757575;--busy:#1e5fb3}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#16181c;--soft:#9aa;--line:#3a3f47;--good:#7bd08f;--bad:#ff8a80;--dull:#a0a0a0;--busy:#8ab8f5}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1.5rem;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:0}
.goal,.objective{white-space:pre-wrap;color:var(--soft)}
dl{display:flex;flex-wrap:wrap;gap:.5rem 2rem;margin:1rem 0}dt{color:var(--soft);font-size:.8rem}dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow:auto;max-height:80vh;border:1px solid var(--line);border-radius:8px;padding:.5rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
tbody th{font-weight:500}.number{text-align:right;font-variant-numeric:tabular-nums}
.time{width:30%;min-width:12rem}.time span{display:block;height:.6rem;min-width:2px;border-radius:3px;background:var(--busy)}
article{border-top:1px solid var(--line);padding:.8rem 0}article p{margin:.3rem 0;overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid var(--line);margin:.5rem 0;padding:.2rem .8rem;font-size:.85rem}
ul{margin:.4rem 0;padding-left:1.2rem}.files{columns:18rem;font-size:.85rem;overflow-wrap:anywhere}small{color:var(--soft)}
.completed{color:var(--good)}.failed{color:var(--bad)}.skipped,.cancelled,.partial{color:var(--dull)}.running,.validating{color:var(--busy)}
svg text{font:12px system-ui,sans-serif;text-anchor:middle;fill:var(--ink)}svg .state{font-size:10px;fill:var(--soft)}
svg rect{fill:var(--paper);stroke:var(--line);stroke-width:1.5}
svg .completed rect{stroke:var(--good)}svg .failed rect{stroke:var(--bad)}svg .running rect,svg .validating rect{stroke:var(--busy)}
svg .skipped rect,svg .cancelled rect{stroke-dasharray:4 3}
svg .edge{fill:none;stroke:var(--soft);stroke-width:1;opacity:.6}svg .edge.skip{stroke-dasharray:6 3}svg .edge.proceed{stroke-dasharray:2 3}
@media print{.scroll{overflow:visible;max-height:none}}
`
