"""The style sheet of the page: for the screen and for print, without colour as the only mark."""

CSS = """
body { max-width: 52rem; margin: 1.5rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .8rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; padding-bottom: .2rem; border-bottom: 1px solid #bbb; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0 0 1rem; font-size: .92em; }
dt { color: #555; }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .9rem .2rem 0; text-align: right; border-bottom: 1px solid #e3e3e3; white-space: pre; }
th { color: #555; font-weight: 600; border-bottom: 1px solid #888; }
th:first-child, td:first-child { text-align: left; white-space: pre-wrap; overflow-wrap: anywhere; min-width: 5.5rem; }
td.doubt { font-weight: 700; color: #9c3d00; }
.warning { border: 2px solid #9c3d00; padding: .6rem 1rem; margin: 1rem 0; }
.warning ul { margin: .3rem 0 0; padding-left: 1.2rem; }
.fine { border-left: 4px solid #009e73; padding-left: .7rem; }
.note { color: #555; font-size: .86em; margin: .5rem 0 0; max-width: 46rem; }
figure { margin: 0; }
svg { width: 100%; height: auto; display: block; }
@media print {
  body { max-width: none; margin: 0; font-size: 10pt; }
  h2 { break-after: avoid; }
  .note { break-before: avoid; }
  tr, figure, .warning { break-inside: avoid; }
}
"""
