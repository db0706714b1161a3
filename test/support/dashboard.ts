import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: { readonly query: string } }[];
  };
}

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

/** The file of alert rules that is shipped. */
export const rulesFile = 'examples/deploy/prometheus/alerts.yaml';

export const dashboard: Dashboard = JSON.parse(readFileSync('examples/deploy/grafana/rivulet.json', 'utf8'));

/** The queries of the dashboard, each with the title of its panel. */
export const dashboardQueries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => [title, expr] as const),
);

export const alerts: Alert[] = parse(readFileSync(rulesFile, 'utf8')).groups.flatMap(
  ({ rules }: { rules: Alert[] }) => rules,
);
