import type { RouteHandler } from '../../api/http/call.ts'
import { fieldsSchema } from '../../protocol/field-schema.ts'

export const listCommandTypes: RouteHandler<'commandTypes'> = ({ engine }) => ({
  commands: engine.registry.all().map((definition) => ({
    type: definition.type,
    summary: definition.summary,
    example: definition.example,
    ...(definition.body === undefined ? {} : { body: definition.body }),
    schema: fieldsSchema(definition),
  })),
})
