import { Type } from '@sinclair/typebox';
import { fail } from '../../core/errors.ts';
import type { PushTarget } from '../../core/push-targets.ts';
import { compile, open } from '../../core/validate.ts';
import type { Access } from '../../engine/access.ts';
import { newId } from '../../engine/ids.ts';
import { pushFormName } from './push-form.ts';
import { PushConfig, tenant } from './request.ts';

// The push notification configs of a task are targets of its run. An empty text counts as an absent one, as in Protocol
// Buffers.

const id = Type.String({ minLength: 1, maxLength: 255 });
export const NewConfig = open({ ...PushConfig.properties, tenant, taskId: id });
export const ConfigName = open({ tenant, taskId: id, id });
/** The part of the configs that a list has. */
export const ConfigPage = open({
  pageSize: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  pageToken: Type.Optional(Type.String({ maxLength: 255 })),
});
export const ConfigList = open({ ...ConfigPage.properties, tenant, taskId: id });

const create = compile(NewConfig);
const named = compile(ConfigName);
const list = compile(ConfigList);

/** A config as it is answered, with its secrets: only callers that own the task get it. */
interface ShownConfig {
  readonly taskId: string;
  readonly id: string;
  readonly url: string;
  readonly token?: string;
  readonly authentication?: { readonly scheme: string; readonly credentials?: string };
}

/** Resolves to the id of a task that the caller may see. @throws RivuletError `run_unknown`, `log_removed` */
export type FindTask = (taskId: string) => Promise<string>;

/** The target of a config; `conversation` is the contextId of its task, where that is not the session of the run. */
export function targetOf(
  { id, url, token, authentication }: PushConfig,
  conversation: string | undefined,
): PushTarget & { readonly id: string } {
  const { scheme = '', credentials } = authentication ?? {};
  return {
    id: id || newId(),
    form: pushFormName,
    url,
    conversation,
    ...(token && { token }),
    ...(scheme !== '' && { authentication: { scheme, ...(credentials && { credentials }) } }),
  };
}

/** Replaces the config with the same id, if there is one. @throws RivuletError as `Access.putTarget` */
export async function createPushConfig(own: Access, find: FindTask, params: unknown): Promise<ShownConfig> {
  const asked = create(params);
  const run_id = await find(asked.taskId);
  const { protocol, conversation } = await own.request(run_id);
  const target = targetOf(asked, protocol === 'a2a' ? conversation : undefined);
  await own.putTarget(run_id, target);
  return shown(run_id, target);
}

/** @throws RivuletError `target_unknown`, and as `Access.targets` */
export async function getPushConfig(own: Access, find: FindTask, params: unknown): Promise<ShownConfig> {
  const { taskId, id } = named(params);
  const run_id = await find(taskId);
  const target = (await own.targets(run_id, pushFormName)).find((one) => one.id === id);
  if (target === undefined) throw fail('target_unknown', id);
  return shown(run_id, target);
}

/** A task has few configs, which are listed in the order in which they were made. @throws as `Access.targets` */
export async function listPushConfigs(own: Access, find: FindTask, params: unknown): Promise<object> {
  const { taskId, pageSize, pageToken } = list(params);
  const run_id = await find(taskId);
  const all = (await own.targets(run_id, pushFormName)).map((target) => shown(run_id, target));
  const from = pageToken ? all.findIndex((one) => one.id === pageToken) + 1 : 0;
  // From the first page on, a client that deletes what it lists would never come to an end.
  if (pageToken && from === 0) throw fail('validation_failed', 'pageToken', 'expected the id of a config of this task');
  const configs = all.slice(from, from + (pageSize || all.length));
  const isLast = from + configs.length >= all.length;
  return { configs, nextPageToken: isLast ? '' : (configs.at(-1)?.id ?? '') };
}

/** Deleting a config that is not there succeeds. @throws RivuletError as `Access.removeTarget` */
export async function deletePushConfig(own: Access, find: FindTask, params: unknown): Promise<object> {
  const { taskId, id } = named(params);
  await own.removeTarget(await find(taskId), id);
  return {};
}

const shown = (taskId: string, { id = '', url, token, authentication }: PushTarget): ShownConfig => ({
  taskId,
  id,
  url,
  token,
  authentication,
});
