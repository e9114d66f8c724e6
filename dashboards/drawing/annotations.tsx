// Annotations on the time axis. Grafana's own component for them is not published: a dashed line, a tinted region, a mark.
// They are elements above the plot, so that the plot itself holds nothing but curves.
import { useLayoutEffect } from 'react';
import { theme } from './fields';

export type Mark = { name: string; color: string; from: number; to: number; text: string };

/** Puts the marks above the plot whenever it draws itself. */
export function Marks({ config, marks }: { config: any; marks: Mark[] }) {
  useLayoutEffect(() => {
    config.addHook('draw', (plot: any) => {
      plot.over.querySelectorAll('[data-mark]').forEach((old: Element) => old.remove());
      plot.over.append(...marks.flatMap((mark) => elementOf(plot, mark) ?? []));
    });
  }, [config]);
  return null;
}

function elementOf(plot: any, mark: Mark): HTMLElement | undefined {
  const { min, max } = plot.scales.x;
  if (mark.to < min || mark.from > max) return undefined;
  const [left, right] = [mark.from, mark.to].map((moment) => plot.valToPos(Math.min(Math.max(moment, min), max), 'x'));
  const color = theme.visualization.getColorByName(mark.color), isRegion = right - left > 1;
  const element = document.createElement('div');
  element.dataset.mark = mark.text;
  Object.assign(element.style, {
    position: 'absolute', top: '0', bottom: '0', left: `${left}px`, width: `${Math.max(right - left, 1)}px`, pointerEvents: 'none',
    borderLeft: `1px dashed ${color}`, borderRight: isRegion ? `1px dashed ${color}` : '', borderBottom: `3px solid ${color}`,
    background: isRegion ? `color-mix(in srgb, ${color} 12%, transparent)` : '',
  });
  return element;
}
