// Draws one dashboard: the bar above, the panels in their frames.
import React from 'react';
import { createRoot } from 'react-dom/client';
import { ThemeContext } from '@grafana/data';
import { GlobalStyles, Icon, PanelChrome, PortalContainer } from '@grafana/ui';
import { SHOWN, theme, timeRange } from './fields';
import { KINDS } from './panels';

const WIDTH = 1600, CELL = 30, GAP = 8, COLUMNS = 24;
const column = (WIDTH + GAP) / COLUMNS;

/** The panels without room for those that are hidden in collapsed rows. */
function arrange(panels: any[]): any[] {
  let hidden = 0;
  return panels.map((panel) => {
    const { y, h } = panel.gridPos, placed = { ...panel, gridPos: { ...panel.gridPos, y: y - hidden } };
    hidden += Math.max(0, ...(panel.panels ?? []).map((each: any) => each.gridPos.y + each.gridPos.h - y - h));
    return placed;
  });
}

function Row({ panel, style }: any) {
  const hidden = panel.collapsed ? panel.panels?.length ?? 0 : 0;
  return <div style={{ ...style, display: 'flex', alignItems: 'center', gap: 8, ...theme.typography.h5 }}>
    <Icon name={panel.collapsed ? 'angle-right' : 'angle-down'} /><span>{panel.title}</span>
    {hidden > 0 && <span style={{ ...theme.typography.bodySmall, color: theme.colors.text.secondary }}>({hidden} panels)</span>}</div>;
}

function Panel({ panel }: any) {
  const { x, y, w, h } = panel.gridPos;
  const style: any = { position: 'absolute', left: x * column, top: y * (CELL + GAP), width: w * column - GAP, height: h * (CELL + GAP) - GAP };
  if (panel.type === 'row') return <Row panel={panel} style={style} />;
  const Kind = KINDS[panel.type];
  return <div style={style}>
    <PanelChrome title={panel.title} description={panel.description} width={style.width} height={style.height}
      displayMode={panel.transparent ? 'transparent' : 'default'} padding={panel.type === 'table' ? 'none' : 'md'}>
      {(width, height) => <Kind panel={panel} width={width} height={height} />}</PanelChrome></div>;
}

const pill: any = { border: `1px solid ${theme.colors.border.weak}`, borderRadius: theme.shape.radius.default, padding: '4px 8px', background: theme.colors.background.primary };

function Bar() {
  const span = `${timeRange.from.utc().format('YYYY-MM-DD HH:mm:ss')} to ${timeRange.to.utc().format('HH:mm:ss')} UTC`;
  return <div style={{ display: 'flex', flexWrap: 'wrap', gap: 12, alignItems: 'center', marginBottom: 12 }}>
    <span style={{ ...theme.typography.h4, marginBottom: 0 }}>{SHOWN.board.title}</span>
    {SHOWN.variables.map((v: any) => <span key={v.label} style={pill}>{v.label} <span style={{ color: theme.colors.text.link }}>{v.text || 'None'}</span></span>)}
    <span style={{ marginLeft: 'auto' }} />
    {(SHOWN.board.links ?? []).map((link: any) => <span key={link.title} style={pill}><Icon name={link.type === 'dashboards' ? 'apps' : 'external-link-alt'} /> {link.title}</span>)}
    <span style={pill}>{span}</span></div>;
}

function Board() {
  const panels = arrange(SHOWN.board.panels);
  const bottom = Math.max(...panels.map((panel: any) => panel.gridPos.y + panel.gridPos.h));
  return <ThemeContext.Provider value={theme}><GlobalStyles /><PortalContainer />
    <div id="board" style={{ padding: 16, width: WIDTH + 32, background: theme.colors.background.canvas, color: theme.colors.text.primary }}>
      <Bar />
      <div style={{ position: 'relative', height: bottom * (CELL + GAP) }}>{panels.map((panel: any) => <Panel key={panel.id} panel={panel} />)}</div>
    </div></ThemeContext.Provider>;
}

createRoot(document.getElementById('root')!).render(<Board />);
