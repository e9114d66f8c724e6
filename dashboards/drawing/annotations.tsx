// Annotations on the time axis. Grafana's own component for them is not published: a dashed line, a tinted region, a mark.
import React, { useLayoutEffect } from 'react';
import { theme } from './fields';

export type Mark = { name: string; color: string; from: number; to: number; text: string };

/** Draws the marks whenever the plot draws itself. */
export function Marks({ config, marks }: { config: any; marks: Mark[] }) {
  useLayoutEffect(() => { config.addHook('draw', (plot: any) => marks.forEach((mark) => draw(plot, mark))); }, [config]);
  return null;
}

function draw(plot: any, mark: Mark) {
  const { ctx, bbox } = plot, ratio = devicePixelRatio;
  const { min, max } = plot.scales.x;
  if (mark.to < min || mark.from > max) return;
  const place = (moment: number) => plot.valToPos(Math.min(Math.max(moment, min), max), 'x', true);
  const [left, right] = [place(mark.from), place(mark.to)];
  const color = theme.visualization.getColorByName(mark.color);
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = ratio;
  ctx.setLineDash([4 * ratio, 4 * ratio]);
  ctx.beginPath();
  for (const x of right > left ? [left, right] : [left]) { ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); }
  ctx.stroke();
  ctx.fillRect(left - (right > left ? 0 : 2 * ratio), bbox.top + bbox.height, Math.max(right - left, 4 * ratio), 3 * ratio);
  ctx.globalAlpha = 0.1;
  ctx.fillRect(left, bbox.top, right - left, bbox.height);
  ctx.restore();
}
