import type { z } from 'zod'
import type { Result } from '../../base/result.ts'

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
