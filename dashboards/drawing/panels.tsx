// One component for each type of panel: Grafana's own, given what its plugin gives it.
import React, { useLayoutEffect } from 'react';
import {
  FieldType, getDisplayValueAlignmentFactors, getFieldDisplayValues, type DataFrame,
} from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { fieldConfigOf, framesOf, SHOWN, theme, timeRange } from './fields';

const same = (text: string) => text;

const nothing = (panel: any) => (
  <div style={{ display: 'flex', alignItems: 'center', justifyContent: 'center', height: '100%', textAlign: 'center',
    fontSize: theme.typography.size.lg, color: theme.colors.text.secondary, padding: 8 }}>{panel.fieldConfig.defaults.noValue}</div>);

function valuesOf(panel: any, frames: DataFrame[], sparkline = false) {
  return getFieldDisplayValues({ fieldConfig: fieldConfigOf(panel), reduceOptions: panel.options.reduceOptions, replaceVariables: same,
    theme, data: frames, sparkline, timeZone: 'utc' });
}

/** Annotations on the time axis; Grafana's own component for them is not published: a dashed line, a tinted region. */
function Marks({ config, hiddenOn }: { config: any; hiddenOn: number }) {
  const marks = SHOWN.annotations.filter((mark: any) => !mark.hiddenOn.includes(hiddenOn));
  useLayoutEffect(() => {
    config.addHook('draw', (plot: any) => {
      plot.over.querySelectorAll('[data-mark]').forEach((old: Element) => old.remove());
      plot.over.append(...marks.map((mark: any) => elementOf(plot, mark)));
    });
  }, [config]);
  return null;
}

function elementOf(plot: any, mark: any): HTMLElement {
  const [left, right] = [mark.from, mark.to].map((moment) => plot.valToPos(Math.min(Math.max(moment, SHOWN.from), SHOWN.to), 'x'));
  const color = theme.visualization.getColorByName(mark.color), isRegion = right - left > 1;
  const element = document.createElement('div');
  element.dataset.mark = 'true';
  Object.assign(element.style, {
    position: 'absolute', top: '0', bottom: '0', left: `${left}px`, width: `${Math.max(right - left, 1)}px`, pointerEvents: 'none',
    borderLeft: `1px dashed ${color}`, borderRight: isRegion ? `1px dashed ${color}` : '', borderBottom: `3px solid ${color}`,
    background: isRegion ? `color-mix(in srgb, ${color} 12%, transparent)` : '',
  });
  return element;
}

function Curves({ panel, width, height }: any) {
  const frames = framesOf(panel).filter((frame) => frame.length && frame.fields.some((field) => field.type === FieldType.number))
    .map((frame) => ({ ...frame, fields: frame.fields.filter((field) => field.type === FieldType.time || field.type === FieldType.number) }));
  if (!frames.length) return nothing(panel);
  return <TimeSeries frames={frames} structureRev={1} timeRange={timeRange} timeZone="utc" width={width} height={height}
    legend={panel.options.legend} options={panel.options}>{(config: any) => <Marks config={config} hiddenOn={panel.id} />}</TimeSeries>;
}

function Stat({ panel, width, height }: any) {
  const frames = framesOf(panel), options = panel.options, values = valuesOf(panel, frames, options.graphMode !== 'none');
  const mode = options.textMode === 'auto' && panel.fieldConfig?.defaults?.displayName ? 'value_and_name' : options.textMode;
  return <VizRepeater getValues={() => values} getAlignmentFactors={() => getDisplayValueAlignmentFactors(values)} width={width} height={height}
    source={frames as any} itemSpacing={3} renderCounter={0} autoGrid={true} orientation={options.orientation}
    renderValue={({ value, width, height, alignmentFactors, count }: any) => <div>
      <BigValue value={value.display} count={count} sparkline={value.sparkline} colorMode={options.colorMode} graphMode={options.graphMode}
        justifyMode={options.justifyMode} textMode={mode} alignmentFactors={alignmentFactors} text={options.text} width={width} height={height}
        theme={theme} disableWideLayout={!options.wideLayout} /></div>} />;
}

function Bars({ panel, width, height }: any) {
  const frames = framesOf(panel), options = panel.options, values = valuesOf(panel, frames);
  return <VizRepeater getValues={() => values} getAlignmentFactors={() => getDisplayValueAlignmentFactors(values)} width={width} height={height}
    source={frames as any} itemSpacing={10} renderCounter={0} minVizHeight={options.minVizHeight ?? 16} minVizWidth={options.minVizWidth ?? 8}
    maxVizHeight={options.maxVizHeight ?? 300} orientation={options.orientation}
    renderValue={({ value, width, height, alignmentFactors, orientation, isOverflow }: any) => <div>
      <BarGauge value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor(value.colIndex)} theme={theme}
        width={width} height={height} orientation={orientation} alignmentFactors={alignmentFactors} itemSpacing={10} lcdCellWidth={12}
        displayMode={options.displayMode ?? 'gradient'} showUnfilled={options.showUnfilled ?? true} valueDisplayMode={options.valueMode}
        namePlacement={options.namePlacement} text={options.text} isOverflow={isOverflow} /></div>} />;
}

function Table({ panel, width, height }: any) {
  const frames = framesOf(panel), options = panel.options;
  const main = frames[options.frameIndex ?? 0] ?? frames[0];
  if (!main?.fields.length || !main.length) return nothing(panel);
  return <TableNG data={main} width={width} height={height} noHeader={options.showHeader === false} cellHeight={options.cellHeight ?? 'sm'}
    initialSortBy={options.sortBy} frozenColumns={options.frozenColumns?.left} enablePagination={false} timeRange={timeRange}
    structureRev={1} fieldConfig={fieldConfigOf(panel)} getActions={() => []} enableVirtualization={false} />;
}

export const KINDS: Record<string, React.ComponentType<any>> = {
  timeseries: Curves, stat: Stat, bargauge: Bars, table: Table,
};
