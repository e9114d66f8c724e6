// One component for each type of panel: Grafana's own, given what its plugin gives it.
import React from 'react';
import {
  FieldType, getDisplayValueAlignmentFactors, getFieldDisplayValues, renderMarkdown, type DataFrame,
} from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { Marks } from './annotations';
import { fieldConfigOf, framesOf, SHOWN, theme, timeRangeOf } from './fields';

const same = (text: string) => text;

export const Words = ({ children }: any) => (
  <div data-words style={{ display: 'flex', alignItems: 'center', justifyContent: 'center', height: '100%', textAlign: 'center',
    fontSize: theme.typography.size.lg, color: theme.colors.text.secondary, padding: 8 }}>{children}</div>);
const nothing = (panel: any) => <Words>{panel.fieldConfig?.defaults?.noValue ?? 'No data'}</Words>;

function valuesOf(panel: any, frames: DataFrame[], sparkline = false) {
  return getFieldDisplayValues({ fieldConfig: fieldConfigOf(panel), reduceOptions: panel.options.reduceOptions, replaceVariables: same,
    theme, data: frames, sparkline, timeZone: 'utc' });
}

function Curves({ panel, width, height }: any) {
  const frames = framesOf(panel).filter((frame) => frame.length && frame.fields.some((field) => field.type === FieldType.number))
    .map((frame) => ({ ...frame, fields: frame.fields.filter((field) => field.type === FieldType.time || field.type === FieldType.number) }));
  if (!frames.length) return nothing(panel);
  return <TimeSeries frames={frames} structureRev={1} timeRange={timeRangeOf(panel)} timeZone="utc" width={width} height={height}
    legend={panel.options.legend} options={panel.options}>{(config: any) => <Marks config={config} marks={SHOWN.annotations.filter((mark: any) => !mark.hiddenOn.includes(panel.id))} />}</TimeSeries>;
}

function Stat({ panel, width, height }: any) {
  const frames = framesOf(panel), options = panel.options, values = valuesOf(panel, frames, options.graphMode !== 'none');
  const mode = options.textMode === 'auto' && panel.fieldConfig?.defaults?.displayName ? 'value_and_name' : options.textMode;
  return <VizRepeater getValues={() => values} getAlignmentFactors={() => getDisplayValueAlignmentFactors(values)} width={width} height={height}
    source={frames as any} itemSpacing={3} renderCounter={0} autoGrid={true} orientation={options.orientation}
    renderValue={({ value, width, height, alignmentFactors, count }: any) => <div data-stat={value.display.text}>
      <BigValue value={value.display} count={count} sparkline={value.sparkline} colorMode={options.colorMode} graphMode={options.graphMode}
        justifyMode={options.justifyMode} textMode={mode} alignmentFactors={alignmentFactors} text={options.text} width={width} height={height}
        theme={theme} disableWideLayout={!options.wideLayout} /></div>} />;
}

function Bars({ panel, width, height }: any) {
  const frames = framesOf(panel), options = panel.options, values = valuesOf(panel, frames);
  return <VizRepeater getValues={() => values} getAlignmentFactors={() => getDisplayValueAlignmentFactors(values)} width={width} height={height}
    source={frames as any} itemSpacing={10} renderCounter={0} minVizHeight={options.minVizHeight ?? 16} minVizWidth={options.minVizWidth ?? 8}
    maxVizHeight={options.maxVizHeight ?? 300} orientation={options.orientation}
    renderValue={({ value, width, height, alignmentFactors, orientation, isOverflow }: any) => <div data-bar={value.display.text}>
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
    initialSortBy={options.sortBy} frozenColumns={options.frozenColumns?.left} enablePagination={false} timeRange={timeRangeOf(panel)}
    structureRev={1} fieldConfig={fieldConfigOf(panel)} getActions={() => []} enableVirtualization={false} />;
}

const Text = ({ panel }: any) => panel.options.mode === 'html'
  ? <div className="markdown-html" dangerouslySetInnerHTML={{ __html: panel.options.content }} />
  : <div className="markdown-html" style={{ height: '100%', overflow: 'hidden' }} dangerouslySetInnerHTML={{ __html: renderMarkdown(panel.options.content) }} />;

export const KINDS: Record<string, React.ComponentType<any>> = {
  timeseries: Curves, stat: Stat, bargauge: Bars, table: Table, text: Text,
};
