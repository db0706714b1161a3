import parsePrometheusTextFormat from 'parse-prometheus-text-format';

/** The metrics of a server, as Prometheus reads them. */
export class Scrape {
  readonly text: string;
  /** By name, such as `rivulet_queue_seconds_bucket`. */
  readonly #samples = new Map<string, ReturnType<typeof parsePrometheusTextFormat>[number]['metrics']>();

  constructor(text: string) {
    this.text = text;
    // The parser merges the series of a histogram, and drops their labels. Without types it keeps each line.
    for (const { name, metrics } of parsePrometheusTextFormat(text.replace(/^#.*\n/gm, ''))) {
      this.#samples.set(name, [...(this.#samples.get(name) ?? []), ...metrics]);
    }
  }

  /** The names that a query may use, also those of metrics without a sample so far. */
  get names(): Set<string> {
    const declared = parsePrometheusTextFormat(this.text).flatMap(({ name, type }) =>
      type === 'HISTOGRAM' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    );
    return new Set([...declared, ...this.#samples.keys()]);
  }

  /** The value of a counter or gauge, or the count of a histogram; undefined where there is none with these labels. */
  value(name: string, labels: Record<string, string> = {}): number | undefined {
    return this.#find(name, labels) ?? this.#find(`${name}_count`, labels);
  }

  sum(name: string): number | undefined {
    return this.#find(`${name}_sum`, {});
  }

  /** The values that a label has. */
  labels(name: string, label: string): string[] {
    return [...new Set(this.#samples.get(name)?.map(({ labels }) => labels?.[label] ?? ''))].sort();
  }

  /** The number of series whose names end in some way. */
  count(end: string): number {
    return [...this.#samples].reduce((sum, [name, samples]) => sum + (name.endsWith(end) ? samples.length : 0), 0);
  }

  #find(name: string, labels: Record<string, string>): number | undefined {
    const found = this.#samples
      .get(name)
      ?.find((sample) => Object.entries(labels).every(([key, value]) => sample.labels?.[key] === value));
    return found?.value === undefined ? undefined : Number(found.value);
  }
}

export const scrape = async (url: string): Promise<Scrape> => new Scrape(await (await fetch(`${url}/metrics`)).text());

/** Scrapes until a condition holds: what a client does reaches the metrics after its response. */
export async function scrapeUntil(url: string, holds: (found: Scrape) => boolean): Promise<Scrape> {
  for (;;) {
    const found = await scrape(url);
    if (holds(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
