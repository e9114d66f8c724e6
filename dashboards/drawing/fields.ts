// What Grafana's core does between a query and a panel: data frames, transformations, field options, links.
import {
  applyFieldOverrides, booleanOverrideProcessor, cacheFieldDisplayNames, createTheme, dataLinksOverrideProcessor, dateTime,
  displayNameOverrideProcessor, FieldColorModeId, identityOverrideProcessor, locationUtil, numberOverrideProcessor, Registry,
  standardFieldConfigEditorRegistry, standardTransformers, standardTransformersRegistry, stringOverrideProcessor,
  thresholdsOverrideProcessor, ThresholdsMode, toDataFrame, transformDataFrame, unitOverrideProcessor,
  valueMappingsOverrideProcessor, type DataFrame,
} from '@grafana/data';

/** What drawing/answers.py has written: the dashboard, the answers to its panels, the time shown. */
export const SHOWN: any = (window as any).SHOWN;
export const theme = createTheme({ colors: { mode: 'dark' } });

const [from, to] = [dateTime(SHOWN.from), dateTime(SHOWN.to)];
/** The time shown. */
export const timeRange = { from, to, raw: { from, to } };

const noop = () => undefined;
const option = (id: string, process: any, more = {}) => ({
  id, path: id, name: id, description: id, editor: noop, override: noop, process, shouldApply: () => true, settings: {}, ...more,
});
const STANDARD = [
  option('displayName', displayNameOverrideProcessor), option('unit', unitOverrideProcessor),
  option('min', numberOverrideProcessor), option('max', numberOverrideProcessor),
  option('decimals', numberOverrideProcessor), option('noValue', stringOverrideProcessor),
  option('fieldMinMax', booleanOverrideProcessor),
  option('color', identityOverrideProcessor), option('thresholds', thresholdsOverrideProcessor),
  option('mappings', valueMappingsOverrideProcessor), option('links', dataLinksOverrideProcessor),
];
standardFieldConfigEditorRegistry.setInit(() => STANDARD as any);
standardTransformersRegistry.setInit(() =>
  [...new Set(Object.values(standardTransformers))].map((each: any) => ({ id: each.id, name: each.name, transformation: each })) as any);
locationUtil.initialize({ config: { appSubUrl: '' } as any, getVariablesUrlParams: () => ({}), getTimeRangeForUrl: () => timeRange.raw });

// The defaults of the panels' own options, which Grafana keeps in its plugins.
const CURVES = {
  drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: 0, gradientMode: 'none', barAlignment: 0,
  barWidthFactor: 0.6, showPoints: 'auto', pointSize: 5, spanNulls: false, insertNulls: false, axisPlacement: 'auto', axisLabel: '',
  axisColorMode: 'text', axisBorderShow: false, axisCenteredZero: false, scaleDistribution: { type: 'linear' },
  stacking: { mode: 'none', group: 'A' }, hideFrom: { legend: false, tooltip: false, viz: false }, thresholdsStyle: { mode: 'off' },
};
const CELLS = { align: 'auto', inspect: false, cellOptions: { type: 'auto' }, filterable: false };
const THRESHOLDS = { mode: ThresholdsMode.Absolute, steps: [{ value: -Infinity, color: 'green' }, { value: 80, color: 'red' }] };

function transformed(panel: any): DataFrame[] {
  const asked = panel.targets.find((target: any) => target.panelId !== undefined)?.panelId ?? panel.id;
  let found = (SHOWN.answers[asked] ?? []).map((frame: any) => toDataFrame(frame));
  transformDataFrame(panel.transformations ?? [], found, { interpolate: (text: string) => text } as any).subscribe((frames) => { found = frames; });
  return found;
}

const withInfinity = (steps: any) => steps && { ...steps, steps: steps.steps.map((s: any) => ({ ...s, value: s.value ?? -Infinity })) };

/** The options of a panel's fields: what its file says over the defaults of its type. */
export function fieldConfigOf(panel: any): any {
  const { custom, ...defaults } = panel.fieldConfig?.defaults ?? {};
  const isCurves = panel.type === 'timeseries';
  const color = { mode: isCurves ? FieldColorModeId.PaletteClassic : FieldColorModeId.Thresholds };
  const overrides = (panel.fieldConfig?.overrides ?? []).map((o: any) => ({ ...o, properties: o.properties.map((p: any) =>
    p.id === 'thresholds' ? { ...p, value: withInfinity(p.value) } : p) }));
  return {
    defaults: { color, ...defaults, thresholds: withInfinity(defaults.thresholds) ?? THRESHOLDS,
      custom: { ...(isCurves ? CURVES : panel.type === 'table' ? CELLS : {}), ...custom } },
    overrides,
  };
}

/** The frames of a panel, with the options of each field filled in. */
export function framesOf(panel: any): DataFrame[] {
  const fieldConfig = fieldConfigOf(panel);
  const named = fieldConfig.overrides.flatMap((o: any) => o.properties.map((p: any) => p.id)).filter((id: string) => id.startsWith('custom.'));
  const ids = new Set<string>([...Object.keys(fieldConfig.defaults.custom).map((key) => `custom.${key}`), ...named]);
  const own = [...ids].map((id) => option(id, identityOverrideProcessor, { path: id.slice('custom.'.length), isCustom: true }));
  const frames = applyFieldOverrides({
    data: transformed(panel), theme, timeZone: 'utc', replaceVariables: (text: string) => text, fieldConfig,
    fieldConfigRegistry: new Registry(() => [...STANDARD, ...own] as any) as any,
  });
  cacheFieldDisplayNames(frames);
  return frames;
}
