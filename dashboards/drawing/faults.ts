// What a reader could not read: an error, a value in small print, an answer that nothing is drawn of.
import { FieldType, getFieldDisplayName } from '@grafana/data';
import { errorOf, framesOf, PANELS, SHOWN, theme } from './fields';

export type Fault = { panel: string; what: string };
const LEAST_PIXELS = 20;
const FEW_ROWS = 8;
/** Columns that hold what an operator types: never cut. */
const COMMANDS = ['type this', 'then type this'];

/** The faults of all drawn panels; called when everything is drawn. */
export function faultsOf(panels: any[]): Fault[] {
  const lost = Object.entries(SHOWN.errors).filter(([name]) => !PANELS.has(Number(name))).map(([panel, what]) => ({ panel, what: `is in error: ${what}` }));
  const found = panels.filter((panel) => panel.type !== 'row').flatMap((panel) => {
    const element = document.querySelector<HTMLElement>(`[data-panel="${panel.id}"]`);
    return faultsOfPanel(panel, element!).map((what) => ({ panel: panel.title || `number ${panel.id}`, what }));
  });
  return [...lost, ...found];
}

/** What the stats say, by their titles, without units; of several values in one, the first. */
export function statsOf(panels: any[]): Record<string, string> {
  const stats = panels.filter((panel) => panel.type === 'stat');
  return Object.fromEntries(stats.map((panel) => [panel.title, document.querySelector<HTMLElement>(`[data-panel="${panel.id}"] [data-stat]`)?.dataset.stat ?? '']));
}

function faultsOfPanel(panel: any, element: HTMLElement): string[] {
  const error = errorOf(panel), broken = element.querySelector<HTMLElement>('[data-broken]');
  if (error) return [`is in error: ${error}`];
  if (broken) return [`cannot be drawn: ${broken.dataset.broken}`];
  if (!isDrawn(panel, element)) return ['has data and draws nothing'];
  if (panel.type === 'table') return [...cutColumns(panel, element), ...hiddenRows(panel, element)];
  if (lacksCurve(panel, element)) return ['has no room for its curve'];
  return [...largeLegend(element), ...clippedValues(element), ...[...element.querySelectorAll<HTMLElement>('[data-stat]')].flatMap((stat) => {
    const size = largestPrint(stat);
    return stat.dataset.stat?.trim() && size < LEAST_PIXELS ? [`shows "${stat.dataset.stat}" at ${Math.round(size)} px, below ${LEAST_PIXELS} px`] : [];
  })];
}

/** Values and names of stats and bars that are shortened, or that lie partly beyond their panel. */
function clippedValues(element: HTMLElement): string[] {
  const box = element.getBoundingClientRect();
  return [...element.querySelectorAll<HTMLElement>('[data-stat] *, [data-bar] *')].filter(ownText).flatMap((each) => {
    const range = document.createRange();
    range.selectNodeContents(each);
    const text = range.getBoundingClientRect();
    const isBeyond = text.left < box.left - 1 || text.right > box.right + 1 || text.top < box.top - 1 || text.bottom > box.bottom + 1;
    return isBeyond || isCut(each) ? [`clips "${ownText(each)}"`] : [];
  });
}

const ownText = (each: Element) => [...each.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.textContent!.trim()).join('');

/** A legend that takes more than a third of its panel, in height below the plot or in width beside it. */
function largeLegend(element: HTMLElement): string[] {
  const plot = element.querySelector<HTMLElement>('.u-wrap'), content = plot?.closest<HTMLElement>('[data-panel] section, [data-panel]');
  if (!plot || !content) return [];
  const [all, own] = [content.getBoundingClientRect(), plot.getBoundingClientRect()], title = own.top - all.top;
  const share = Math.max((all.height - title - own.height) / (all.height - title), (all.width - own.width) / all.width);
  return share > 1 / 3 ? [`gives ${Math.round(100 * share)} % of its room to the legend`] : [];
}

/** Rows that are seen only by scrolling, of a table that has few, each of one line. */
function hiddenRows(panel: any, element: HTMLElement): string[] {
  const bottom = element.getBoundingClientRect().bottom + 1, count = framesOf(panel)[0]?.length ?? 0;
  const rows = [...element.querySelectorAll<HTMLElement>('[role="row"]')].filter((row) => row.querySelector('[role="gridcell"]'));
  const hidden = rows.filter((row) => row.getBoundingClientRect().bottom > bottom).length;
  const isWrapped = framesOf(panel)[0]?.fields.some((field) => field.config.custom?.wrapText);
  return hidden && count <= FEW_ROWS && !isWrapped ? [`hides ${hidden} of ${count} rows`] : [];
}

/** Whether a number with a curve behind it is drawn without one, as Grafana does where there is little room. */
const lacksCurve = (panel: any, element: HTMLElement) => panel.type === 'stat' && panel.options.graphMode === 'area'
  && framesOf(panel).some((frame) => frame.length > 1) && !element.querySelector('[data-stat] canvas');

/** Columns that lie beyond the panel's edge, headings that are cut, and texts that are, in columns with a width of their own. */
function cutColumns(panel: any, element: HTMLElement): string[] {
  const edge = element.getBoundingClientRect().right + 1, fields = framesOf(panel)[0]?.fields ?? [];
  const isWide = (name: string) => COMMANDS.includes(name) || fields.some((field) => getFieldDisplayName(field) === name && field.config.custom?.width && !field.config.custom?.inspect);
  return [...element.querySelectorAll<HTMLElement>('[role="columnheader"]')].flatMap((header) => {
    const name = header.textContent!.trim(), number = header.getAttribute('aria-colindex');
    if (header.getBoundingClientRect().right > edge) return [`hides the column "${name}" beyond its edge`];
    if (isCut(header)) return [`cuts the heading "${name}"`];
    const cells = isWide(name) ? [...element.querySelectorAll<HTMLElement>(`[role="gridcell"][aria-colindex="${number}"]`)] : [];
    return cells.filter(isCut).slice(0, 1).map((cell) => `cuts "${cell.textContent!.trim()}" in the column "${name}"`);
  });
}

const isCut = (cell: HTMLElement) => [cell, ...cell.querySelectorAll<HTMLElement>('*')]
  .some((each) => each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX !== 'visible');

/** The size of the largest letters: a stat's value is never smaller than its name. */
function largestPrint(element: HTMLElement): number {
  const texts = [...element.querySelectorAll<HTMLElement>('*')].filter((each) => [...each.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent!.trim()));
  return Math.max(0, ...texts.map((each) => parseFloat(getComputedStyle(each).fontSize)));
}

function isDrawn(panel: any, element: HTMLElement): boolean {
  if (panel.type === 'text') return element.querySelector('.markdown-html')!.textContent!.trim() !== '';
  const fields = framesOf(panel).flatMap((frame) => frame.fields);
  const has = (wanted: (field: any) => boolean) => fields.some((field) => wanted(field) && field.values.some((value: any) => value !== null && value !== undefined));
  if (panel.type === 'timeseries') return !has((field) => field.type === FieldType.number && !field.config.custom?.hideFrom?.viz) || drawsCurves(element);
  if (panel.type === 'table') return !fields.some((field) => field.values.length) || [...element.querySelectorAll('[role="gridcell"]')].some((cell) => cell.textContent!.trim());
  if (!has((field) => field.type !== FieldType.time)) return true;
  return [...element.querySelectorAll<HTMLElement>('[data-stat], [data-bar]')].some((value) => value.textContent!.trim() !== '');
}

/** Whether a pixel of the plot has a colour: grid, axes and background have none. */
function drawsCurves(element: HTMLElement): boolean {
  const canvas = element.querySelector<HTMLCanvasElement>('.u-wrap canvas'), over = element.querySelector<HTMLElement>('.u-over');
  if (!canvas || !over) return false;
  const ratio = canvas.width / canvas.clientWidth;
  const box = [over.offsetLeft, over.offsetTop - 2, over.offsetWidth, over.offsetHeight + 4].map((side) => Math.round(side * ratio)) as [number, number, number, number];
  const { data } = canvas.getContext('2d')!.getImageData(...box);
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b, alpha] = [data[i], data[i + 1], data[i + 2], data[i + 3]];
    if (alpha > 40 && (Math.max(r, g, b) - Math.min(r, g, b) > 40 || (theme.isDark ? Math.min(r, g, b) > 150 && alpha > 150 : Math.max(r, g, b) < 110 && alpha > 150))) return true;
  }
  return false;
}
