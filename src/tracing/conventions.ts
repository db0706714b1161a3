/**
 * Names of the GenAI conventions, from github.com/open-telemetry/semantic-conventions-genai at commit 002c8a6. All of
 * them have the status Development, and the package of constants no longer has them.
 */
export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agentName: 'gen_ai.agent.name',
  agentId: 'gen_ai.agent.id',
  agentDescription: 'gen_ai.agent.description',
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  responseId: 'gen_ai.response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  toolName: 'gen_ai.tool.name',
  toolCallId: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  firstChunk: 'gen_ai.response.time_to_first_chunk',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  duration: 'gen_ai.invoke_agent.duration',
} as const;

/** Of the stable conventions. */
export const errorType = 'error.type';

/** Rivulet's own. */
export const rivulet = {
  run: 'rivulet.run.id',
  status: 'rivulet.run.status',
  attempt: 'rivulet.run.attempt',
  epoch: 'rivulet.run.epoch',
  /** Of a step or a called agent: completed, failed, cancelled or awaiting. */
  outcome: 'rivulet.outcome',
} as const;
