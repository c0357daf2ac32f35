/** Apart from the harness, so that it also loads outside of a test. */

import type { ModelSettings, ToolDefinition } from '../../../src/llm/llm.ts'

export type Wire = 'anthropic' | 'openai-compatible'

export function modelAt(url: string, provider: Wire, over: Partial<ModelSettings> = {}): ModelSettings {
  return {
    provider,
    model: provider === 'anthropic' ? 'claude-sonnet-4-5' : 'llama',
    baseUrl: `${url}/v1`,
    keyEnv: 'MODEL_KEY',
    timeoutMs: 10_000,
    retries: 0,
    ...over,
  }
}

export const TOOLS: readonly ToolDefinition[] = [
  {
    name: 'send_message',
    description: 'Sends a message.',
    schema: {
      type: 'object',
      properties: { to: { type: 'string' }, content: { type: 'string' } },
      required: ['to', 'content'],
    },
  },
  { name: 'mailbox_check', description: 'Gets your mail.', schema: { type: 'object', properties: {} } },
]
