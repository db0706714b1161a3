import type {
  Attributes,
  AttributeValue,
  Exception,
  Link,
  Span,
  SpanContext,
  SpanStatus,
  TimeInput,
} from '@opentelemetry/api';

/**
 * The span that is active in an agent's code. It stands for the span of the moment: an `async` function that has
 * awaited a reply goes on in the async context in which it asked, whose span has ended. The cost is one more call for
 * each use.
 */
export class CurrentSpan implements Span {
  span: Span;

  constructor(span: Span) {
    this.span = span;
  }

  spanContext(): SpanContext {
    return this.span.spanContext();
  }

  isRecording(): boolean {
    return this.span.isRecording();
  }

  setAttribute(key: string, value: AttributeValue): this {
    this.span.setAttribute(key, value);
    return this;
  }

  setAttributes(attributes: Attributes): this {
    this.span.setAttributes(attributes);
    return this;
  }

  addEvent(name: string, attributesOrTime?: Attributes | TimeInput, time?: TimeInput): this {
    this.span.addEvent(name, attributesOrTime, time);
    return this;
  }

  addLink(link: Link): this {
    this.span.addLink(link);
    return this;
  }

  addLinks(links: Link[]): this {
    this.span.addLinks(links);
    return this;
  }

  setStatus(status: SpanStatus): this {
    this.span.setStatus(status);
    return this;
  }

  updateName(name: string): this {
    this.span.updateName(name);
    return this;
  }

  recordException(exception: Exception, time?: TimeInput): void {
    this.span.recordException(exception, time);
  }

  /** The span ends with the work of the agent, not when the agent's code says so. */
  end(): void {}
}
