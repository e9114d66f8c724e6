// Where panels stand: a collapsed row hides its panels, and an expanded one pushes down what follows, as in Grafana.

export type Place = { x: number; y: number; w: number; h: number };

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
  return placed;
}
