import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { of } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agent } from '../../support/agents.ts';
import { alerts, dashboard, dashboardQueries } from '../../support/dashboard.ts';
import { type Scrape, scrapeUntil } from '../../support/scrape.ts';
import { ask, listen, type Served } from '../../support/serve.ts';

/** The names of metrics in an expression. @throws Error where it is no PromQL */
function namesIn(expr: string): string[] {
  // Grafana replaces its variables before Prometheus sees the expression.
  const text = expr.replace(/\$__rate_interval/g, '5m').replace(/\$\w+/g, 'x');
  const names: string[] = [];
  parser.parse(text).iterate({
    enter: ({ type, from, to }) => {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${text}`);
      if (type.name === 'VectorSelector') names.push(text.slice(from, to).split('{')[0]?.trim() ?? '');
    },
  });
  return names;
}

let served: Served;
let scraped: Scrape;

beforeAll(async () => {
  served = await listen([agent('one', () => of('a', 'b'))], { metrics: true });
  await (await served.post('/runs', ask('one'))).text();
  scraped = await scrapeUntil(served.url, (found) => found.value('rivulet_runs_total') === 1);
});

afterAll(() => served.app.close());

describe('the dashboard', () => {
  it.each(dashboardQueries)('%s: asks for metrics that a scrape has', (_, expr) => {
    const names = namesIn(expr);
    expect(names).not.toEqual([]);
    expect(names.filter((name) => name !== 'up' && !scraped.names.has(name))).toEqual([]);
  });

  it('shows every metric of Rivulet', () => {
    const shown = new Set(dashboardQueries.flatMap(([, expr]) => namesIn(expr)).map(family));
    const all = [...scraped.names].filter((name) => name.startsWith('rivulet_')).map(family);
    expect(all.filter((name) => !shown.has(name))).toEqual([]);
  });

  it('has panels that do not overlap, with ids of their own', () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    const cells = dashboard.panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: h * w }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...dashboard.panels.map(({ gridPos: { x, w } }) => x + w))).toBeLessThanOrEqual(24);
  });

  it('chooses agents and jobs from metrics that a scrape has', () => {
    const queries = dashboard.templating.list.flatMap(({ query }) => query.query ?? []);
    for (const query of queries) {
      expect(scraped.names).toContain(/^label_values\((\w+)/.exec(query)?.[1]);
    }
    expect(queries).toHaveLength(2);
  });
});

describe('the alerts', () => {
  it.each(alerts.map((one) => [one.alert, one] as const))('%s: asks for metrics that a scrape has', (_, { expr }) => {
    const names = namesIn(expr);
    expect(names).not.toEqual([]);
    expect(names.filter((name) => name !== 'up' && !scraped.names.has(name))).toEqual([]);
  });

  it('each have a section in docs/alerts.md that says what to do', () => {
    const page = readFileSync('docs/alerts.md', 'utf8');
    const sections = [...page.matchAll(/^## (Rivulet\w+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(alerts.map(({ alert }) => alert));
    for (const { alert, annotations } of alerts) {
      expect(annotations.runbook).toBe(`docs/alerts.md#${alert.toLowerCase()}`);
    }
  });
});

describe('docs/metrics.md', () => {
  it('has every metric, with its type and its labels', () => {
    const page = readFileSync('docs/metrics.md', 'utf8');
    const documented = [...page.matchAll(/^\| `(rivulet_\w+)` +\| (\w+)/gm)].map(([, name, type]) => `${name} ${type}`);
    const declared = [...scraped.text.matchAll(/^# TYPE (rivulet_\w+) (\w+)$/gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    expect(documented.sort()).toEqual(declared.sort());
  });
});

/** The name of a metric without what a histogram adds. */
function family(name: string): string {
  return name.replace(/_(bucket|sum|count)$/, '');
}
