import type { RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import type { PermissionQuestion, PermissionVerdict } from '../runtime.ts'

const SHOWN_LIMIT = 64 * 1024

export function questionOf(request: RequestPermissionRequest, key: string): PermissionQuestion {
  const { toolCall } = request
  const title = toolCall.title ?? undefined
  return {
    key,
    tool: toolCall.name ?? toolCall.kind ?? 'tool',
    input: shown(toolCall),
    ...(title === undefined ? {} : { reason: title }),
  }
}

/** What exactly it wants: its input where the agent gives one, else what it shows. */
function shown(toolCall: RequestPermissionRequest['toolCall']): Record<string, unknown> {
  const { rawInput, title, content, locations } = toolCall
  const isObject = typeof rawInput === 'object' && rawInput !== null && !Array.isArray(rawInput)
  const input: Record<string, unknown> = isObject
    ? { ...rawInput }
    : { title, ...(rawInput === undefined ? {} : { input: rawInput }) }
  if (content != null && content.length > 0) input.content = content
  if (locations != null && locations.length > 0) input.locations = locations
  const json = JSON.stringify(input)
  return json.length <= SHOWN_LIMIT ? input : { title, cut: `${json.slice(0, SHOWN_LIMIT)}…` }
}

/**
 * A verdict holds for once. An agent that offers no such option is told that the question was cancelled, since a
 * person who allowed one thing has not allowed it for ever.
 */
export function answerOf(
  request: RequestPermissionRequest,
  verdict: PermissionVerdict | undefined,
): RequestPermissionResponse {
  const kind = verdict?.allow === true ? 'allow_once' : 'reject_once'
  const option = verdict === undefined ? undefined : request.options.find((offered) => offered.kind === kind)
  if (option === undefined) return { outcome: { outcome: 'cancelled' } }
  return { outcome: { outcome: 'selected', optionId: option.optionId } }
}
