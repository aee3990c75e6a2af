"""The page's style sheet: light, dark, narrow and printed. No fonts, images or scripts are asked for."""

from __future__ import annotations

from ulorl.report.plot import PALETTE, light_values, plot_style

_SURFACES = {
    "light": {"tint": "#f5f5f3", "right": "#00694e", "wrong": "#a84300"},
    "dark": {"paper": "#141517", "tint": "#1e2023", "right": "#5fd0ad", "wrong": "#f2a06d"},
}
_DARK = {"ink": "#e6e6e3", "muted": "#a2a2a0", "grid": "#34373b"}

_RULES = """
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;max-width:73rem;padding:1.5rem 1.25rem 5rem;background:var(--paper);color:var(--ink);
 font:1rem/1.55 system-ui,-apple-system,"Segoe UI","Helvetica Neue",Arial,"DejaVu Sans",sans-serif;
 font-variant-numeric:tabular-nums;overflow-wrap:break-word}
h1{font-size:1.6rem;line-height:1.2;margin:0 0 .25rem;font-weight:650;letter-spacing:-.01em}
h2{font-size:1.2rem;line-height:1.3;margin:3.25rem 0 .75rem;padding-top:.75rem;border-top:1px solid var(--grid);
 font-weight:650}
h3{font-size:1rem;margin:2rem 0 .5rem;font-weight:650}
p{margin:.5rem 0;max-width:44rem}
.quiet,figcaption,caption,summary .quiet{color:var(--muted)}
p.quiet{font-size:.88rem}
.lead{color:var(--muted);margin:0 0 1rem}
a{color:inherit;text-decoration-color:var(--muted);text-underline-offset:.18em}
nav ul{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;list-style:none;margin:0;padding:.35rem 0;font-size:.9rem}
nav a{display:inline-block;padding:.3rem 0}
:focus-visible{outline:2px solid var(--c1);outline-offset:2px}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(14rem,1fr));gap:1rem 1.75rem;margin:1.25rem 0}
.facts>div{border-top:2px solid var(--ink);padding-top:.4rem}
.facts dt{font-size:.85rem;color:var(--muted)}
.facts dd{margin:0;font-size:1.35rem;line-height:1.3;font-weight:600}
.facts .more{font-size:.85rem;font-weight:400;color:var(--muted);line-height:1.4}
.wide{overflow-x:auto;margin:.75rem 0;background:
 linear-gradient(90deg,var(--paper) 30%,transparent) 0 0/2.5rem 100% no-repeat local,
 linear-gradient(270deg,var(--paper) 30%,transparent) 100% 0/2.5rem 100% no-repeat local,
 linear-gradient(90deg,var(--grid),transparent) 0 0/.7rem 100% no-repeat scroll,
 linear-gradient(270deg,var(--grid),transparent) 100% 0/.7rem 100% no-repeat scroll}
table{border-collapse:collapse;font-size:.9rem;line-height:1.4}
caption{text-align:left;font-size:.85rem;padding:0 0 .35rem;caption-side:top}
th,td{padding:.28rem .9rem .28rem 0;text-align:left;vertical-align:baseline}
th{font-weight:600;border-bottom:1px solid var(--muted)}
tbody th{font-weight:400;border-bottom:0}
tbody tr+tr>*{border-top:1px solid var(--grid)}
.group th{padding-top:.7rem;border-bottom:1px solid var(--grid)}
.estimates td{padding-top:.18rem;padding-bottom:.18rem}.estimates tr>*{border-top:0}
.n{text-align:right}td.n{white-space:nowrap}
@media (min-width:64rem){.beside{display:grid;grid-template-columns:auto minmax(20rem,1fr);gap:0 2.5rem;
 align-items:start}}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20.5rem),1fr));gap:1.75rem 2rem;
 margin:1rem 0}
figure{margin:0;break-inside:avoid}
figure h4{font-size:.95rem;font-weight:600;margin:0 0 .3rem}
figcaption{font-size:.8rem;line-height:1.4;margin-top:.2rem}
svg.plot{display:block;width:100%;height:auto;max-width:30rem}
svg.bar{display:block;width:9rem;height:.7rem}
.bar .kept{fill:var(--c1)}.bar .gone{fill:var(--c2)}.bar .rest{fill:var(--grid)}
.sample,.problem{break-inside:avoid-page}
.problem{margin:1.75rem 0;padding-top:.9rem;border-top:1px solid var(--grid)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:1rem 1.5rem;margin-top:.6rem}
.pair>*{min-width:0}
.text{white-space:pre-wrap;overflow-wrap:anywhere;overflow-x:auto;unicode-bidi:isolate;max-width:none}
.question{max-width:46rem}
.output{background:var(--tint);padding:.7rem .85rem;font-size:.88rem;line-height:1.5;border-radius:3px;margin:.35rem 0;
 max-height:30rem;overflow:auto}
.cut{display:block;color:var(--muted);font-style:italic;margin:.6rem 0}
.head{font-size:.88rem}
.verdict{font-weight:650}
.right{color:var(--right)}.wrong{color:var(--wrong)}
.bad{border-left:3px solid var(--wrong);padding-left:.75rem}
.missing{color:var(--muted);border-left:3px solid var(--grid);padding-left:.75rem}
code,pre{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.86em}
code{overflow-wrap:anywhere;white-space:pre-wrap;unicode-bidi:isolate}
pre{background:var(--tint);padding:.8rem;overflow-x:auto;line-height:1.45;border-radius:3px;max-height:32rem}
.source{color:var(--muted)}
math{font-size:1.06em;font-family:"STIX Two Math","Cambria Math","Latin Modern Math","Libertinus Math",
 "DejaVu Math TeX Gyre","Noto Sans Math",math}
math[display=block]{display:block math;overflow-x:auto;overflow-y:hidden;padding:.15rem 0}
.boxed{border:1px solid currentColor;padding:.1em .25em}
details{margin:.45rem 0}
summary{cursor:pointer;padding:.3rem 0}
details ul{margin:.25rem 0 1rem;padding-left:1.2rem}
details li{margin:.6rem 0}
.tree,.tree ul{list-style:none;padding-left:1.1rem;margin:.2rem 0;border-left:1px solid var(--grid)}
.tree{padding-left:0;border-left:0}
.tree li{margin:.35rem 0}
footer{margin-top:3.5rem;font-size:.85rem;color:var(--muted)}
@media (max-width:480px){body{padding:1rem .9rem 3rem}h1{font-size:1.35rem}
 .facts{grid-template-columns:1fr 1fr;gap:.9rem 1rem}
 .facts dd{font-size:1.15rem}th,td{padding-right:.45rem}table{font-size:.78rem}svg.bar{width:6rem}}
@media (max-width:400px){.facts{grid-template-columns:1fr}}
@media (max-width:640px){.funnel,.funnel tbody{display:block}.funnel thead{display:none}
 .funnel tr{display:grid;grid-template-columns:6.6rem 1fr 4rem 4rem;align-items:baseline;padding:.3rem 0;
  border-top:1px solid var(--grid)}
 .funnel tr>*{border:0;padding:.1rem 0}.funnel td:last-child{grid-column:1/-1}}
@media print{
 @page{margin:15mm 14mm}
 html{font-size:9pt}body{max-width:none;padding:0}nav{display:none}
 h2,h3,h4,h3+p,h2+p,summary{break-after:avoid}tr{break-inside:avoid}
 h2{margin-top:2rem}.problem{margin:.9rem 0;padding-top:.5rem}
 .beside{display:grid;grid-template-columns:auto 1fr;gap:0 2rem}.figures{grid-template-columns:1fr 1fr}
 .wide{background:none}.wide,.text,.output,math[display=block]{overflow:visible}
 .output{border:1px solid var(--grid);background:none;max-height:none}
 pre{max-height:none;white-space:pre-wrap;overflow:visible;columns:2;font-size:.72rem}
 details::details-content{content-visibility:visible;display:block;height:auto}
 details>*{display:block}details.long{display:none}}
"""


def page_style() -> str:
    """The whole style sheet."""
    light = light_values() | _SURFACES["light"]
    dark = _DARK | _SURFACES["dark"] | {f"c{slot}": colour for slot, colour in enumerate(PALETTE["dark"], start=1)}
    variables = plot_style({role: f"var(--{role})" for role in light_values()})
    return (
        f":root{{{_variables(light)}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{_variables(dark)}}}}}\n"
        f"{variables}{_RULES}"
    )


def _variables(values: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in values.items())
