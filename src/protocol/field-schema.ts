import { z } from 'zod'
import type { CommandDefinition } from './command.ts'

/** The parameters of a command as JSON Schema. */
export function fieldsSchema(definition: CommandDefinition): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(definition.fields, {
    io: 'output',
    unrepresentable: 'any',
  }) as Record<string, unknown>
  const shape = definition.fields.shape
  // `io: input`: a parameter with a default is optional.
  const required = Object.keys(shape).filter((field) => !shape[field]!.safeParse(undefined).success)
  return { ...schema, required, additionalProperties: true }
}
