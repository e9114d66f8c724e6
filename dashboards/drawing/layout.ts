// Where panels stand: a collapsed row hides its panels, an expanded one pushes down what follows, and every panel rises
// until it meets another one, as in Grafana's grid.

/** The panels in the order and at the places in which they are drawn. */
export function arrange(panels: any[], isExpanded: boolean): any[] {
  const placed: any[] = [];
  let shift = 0;
  for (const panel of panels) {
    const own = { ...panel, gridPos: { ...panel.gridPos, y: panel.gridPos.y + shift } };
    placed.push(own);
    const hidden: any[] = panel.panels ?? [];
    if (panel.type !== 'row' || !isExpanded || !hidden.length) continue;
    const top = Math.min(...hidden.map((each) => each.gridPos.y)), bottom = Math.max(...hidden.map((each) => each.gridPos.y + each.gridPos.h));
    const first = own.gridPos.y + 1;
    placed.push(...hidden.map((each) => ({ ...each, gridPos: { ...each.gridPos, y: each.gridPos.y - top + first } })));
    own.collapsed = false;
    shift += bottom - top;
  }
  return rise(placed);
}

/** The panels without room between them and those above; a row spans the whole width. */
function rise(panels: any[]): any[] {
  const settled: any[] = [];
  for (const panel of [...panels].sort((a, b) => a.gridPos.y - b.gridPos.y || a.gridPos.x - b.gridPos.x)) {
    const { x, w } = panel.type === 'row' ? { x: 0, w: 24 } : panel.gridPos;
    const above = settled.filter(({ gridPos: other }) => other.x < x + w && x < other.x + other.w);
    const y = Math.max(0, ...above.map(({ gridPos: other }) => other.y + other.h));
    settled.push({ ...panel, gridPos: { ...panel.gridPos, x, w, y } });
  }
  return settled;
}
