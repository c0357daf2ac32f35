import type { z } from 'zod'

type ReadObject<Value> = { ok: true; value: Value } | { ok: false; problem: string }

const PROBLEM = 1000

/** The value in a model's answer. Small models put fences or words around it, whatever they are told. */
export function readObject<Schema extends z.ZodType>(
  text: string,
  schema: Schema,
): ReadObject<z.output<Schema>> {
  const json = parse(text)
  if (json === undefined) {
    const problem = text.trim() === '' ? 'The answer is empty.' : 'The answer is not JSON.'
    return { ok: false, problem }
  }
  const parsed = schema.safeParse(json.value)
  if (parsed.success) return { ok: true, value: parsed.data }
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${path.join('.') || 'the value'}: ${message}`,
  )
  return { ok: false, problem: problems.join('; ').slice(0, PROBLEM) }
}

/** The whole answer, or the one fenced block in it, or what stands between its outermost braces. */
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
