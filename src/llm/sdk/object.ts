import { generateText, jsonSchema, NoObjectGeneratedError, Output } from 'ai'
import { z } from 'zod'
import { excerpt } from '../../base/excerpt.ts'
import type { Result } from '../../base/result.ts'
import type { Generated, ModelFailure, ObjectCall } from '../llm.ts'
import type { ModelConnection } from './connection.ts'
import { failure, refusalOf } from './failure.ts'

/** The first answer, and one correction. */
const ANSWERS = 2
const SHOWN = 4000

/** Asks for structured output. The prompt repeats the schema for models without that feature. */
export async function generateObject<Schema extends z.ZodType>(
  connection: ModelConnection,
  call: ObjectCall<Schema>,
): Promise<Generated<z.output<Schema>> | ModelFailure> {
  const schema = z.toJSONSchema(call.schema, { target: 'draft-7', io: 'input' })
  const instructions = [call.system ?? '', howToAnswer(schema)].join('\n\n').trim()
  const messages: { role: 'user' | 'assistant'; content: string }[] = [{ role: 'user', content: call.prompt }]
  let problem = ''
  let asksBySchema = true
  for (let answer = 0; answer < ANSWERS; answer += 1) {
    let answered = await ask(connection, instructions, messages, asksBySchema ? schema : undefined)
    if (!answered.ok && answered.code === 'refused' && asksBySchema && mayLackSchemas(connection)) {
      asksBySchema = false
      answered = await ask(connection, instructions, messages, undefined)
    }
    if (!answered.ok) return answered
    const read = readObject(answered.text, call.schema)
    if (read.ok) return { ok: true, value: read.value }
    problem = read.error
    messages.push(
      { role: 'assistant', content: excerpt(answered.text, SHOWN) || '(nothing)' },
      { role: 'user', content: `That cannot be used: ${problem}\nAnswer again, with the JSON alone.` },
    )
  }
  const { provider, model } = connection.settings
  return failure('garbage', `${provider} (${model}) gave an answer that does not fit the schema: ${problem}`)
}

/** Some OpenAI-compatible servers reject requests with a schema. */
function mayLackSchemas({ settings }: ModelConnection): boolean {
  return settings.provider === 'openai-compatible'
}

function howToAnswer(schema: unknown): string {
  return `Answer with one JSON value and nothing else: no code fence, no words around it. It must fit this JSON Schema:\n${JSON.stringify(schema)}`
}

async function ask(
  connection: ModelConnection,
  instructions: string,
  messages: { role: 'user' | 'assistant'; content: string }[],
  schema: Parameters<typeof jsonSchema>[0] | undefined,
): Promise<{ ok: true; text: string } | ModelFailure> {
  return await connection.attempt(async ({ signal }) => {
    const result = await generateText({
      ...connection.common,
      instructions,
      messages,
      ...(schema === undefined ? {} : { output: Output.object({ schema: jsonSchema(schema) }) }),
      abortSignal: signal,
    }).catch((error: unknown) => {
      // The library throws if the text doesn't parse; keep the text, because `readObject` may still use it.
      if (NoObjectGeneratedError.isInstance(error) && error.usage !== undefined) {
        const { text = '', usage, finishReason = 'other' } = error
        return { text, usage, finishReason }
      }
      throw error
    })
    connection.spent(result.usage)
    const refusal = refusalOf(result.finishReason, connection.settings)
    return refusal ?? { ok: true as const, text: result.text }
  })
}

const PROBLEM = 1000

/** Extracts the value from a model's answer. Small models put fences or words around it despite the instructions. */
export function readObject<Schema extends z.ZodType>(
  text: string,
  schema: Schema,
): Result<z.output<Schema>, string> {
  const json = parse(text)
  if (json === undefined) {
    const error = text.trim() === '' ? 'The answer is empty.' : 'The answer is not JSON.'
    return { ok: false, error }
  }
  const parsed = schema.safeParse(json.value)
  if (parsed.success) return { ok: true, value: parsed.data }
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${path.join('.') || 'the value'}: ${message}`,
  )
  return { ok: false, error: problems.join('; ').slice(0, PROBLEM) }
}

/** Tries the whole answer, the only fenced block, and the text between the outermost braces. */
function parse(text: string): { value: unknown } | undefined {
  const fenced = [...text.matchAll(/```(?:json)?\s*\n([\s\S]*?)```/gi)]
  const candidates = [
    text,
    ...(fenced.length === 1 ? [fenced[0]![1]!] : []),
    text.slice(Math.max(0, text.indexOf('{')), text.lastIndexOf('}') + 1),
  ]
  for (const candidate of candidates) {
    try {
      return { value: JSON.parse(candidate) }
    } catch {}
  }
  return undefined
}
