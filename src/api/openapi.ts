import { z } from 'zod'
import { fieldsSchema } from '../protocol/field-schema.ts'
import type { Registry } from '../protocol/registry.ts'
import {
  AgentSchema,
  AuditEntrySchema,
  ErrorAnswer,
  HumanRequestSchema,
  MailSchema,
  ReceiptSchema,
  ROUTES,
  type Route,
  type RouteName,
} from './contract.ts'

type JsonObject = Record<string, unknown>

const REF = '#/components/schemas/'
const SHARED = {
  Agent: AgentSchema,
  AuditEntry: AuditEntrySchema,
  Error: ErrorAnswer,
  HumanRequest: HumanRequestSchema,
  Mail: MailSchema,
  Receipt: ReceiptSchema,
}

/** Generates the OpenAPI 3.1 document from the same route table and schemas that the service uses. */
export function openApi(registry: Registry, version: string): JsonObject {
  const paths: Record<string, JsonObject> = {}
  const schemas = sharedSchemas()
  for (const definition of registry.all()) {
    schemas[commandName(definition.type)] = commandSchema(definition.type, fieldsSchema(definition))
  }
  for (const [name, route] of Object.entries<Route>(ROUTES)) {
    paths[route.path] = { ...paths[route.path], [route.method]: operation(name, route, registry) }
  }
  return {
    openapi: '3.1.0',
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    info: { title: 'Orchub', version, license: { name: 'MIT', identifier: 'MIT' } },
    paths,
    components: {
      schemas,
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'orc token create AGENT' } },
    },
  }
}

function operation(name: string, route: Route, registry: Registry): JsonObject {
  return {
    operationId: name,
    summary: route.summary,
    security: route.who === 'anyone' ? [] : [{ token: [] }],
    ...describeWho(route),
    parameters: [...pathParameters(route.path), ...queryParameters(route)],
    ...(route.body === undefined ? {} : { requestBody: requestBody(name, route.body, registry) }),
    responses: {
      200: { description: 'Success', content: answers(route) },
      ...MORE_ANSWERS[name as RouteName],
      default: { description: 'An error with its code and a hint what to do', content: json(ref('Error')) },
    },
  }
}

const MORE_ANSWERS: Partial<Record<RouteName, JsonObject>> = {
  command: {
    202: { description: 'Held until a person decides', content: json(ref('Receipt')) },
    403: { description: 'Blocked by a rule or not permitted', content: json(ref('Receipt')) },
  },
  mcp: { 202: { description: 'A notification, which gets no response' } },
}

function answers(route: Route): JsonObject {
  const also = Object.entries(route.also ?? {}).map(([type, description]) => [
    type,
    { schema: { type: 'string', description } },
  ])
  const type = route.type ?? 'application/json'
  return { [type]: { schema: schemaOf(route.answer, 'output') }, ...Object.fromEntries(also) }
}

function requestBody(name: string, body: z.ZodType, registry: Registry): JsonObject {
  if (name !== 'command') return { required: true, content: json(schemaOf(body, 'input')) }
  const command = { oneOf: registry.all().map(({ type }) => ref(commandName(type))) }
  return {
    required: true,
    content: {
      ...json({ anyOf: [command, { type: 'array', items: command, maxItems: 1000 }] }),
      'text/plain': {
        schema: { type: 'string', description: 'Text that contains commands, as an agent writes them' },
      },
    },
  }
}

function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameters({ query }: Route): JsonObject[] {
  if (query === undefined) return []
  return Object.entries(query.shape).map(([name, field]) => {
    const { description, ...schema } = schemaOf(field as z.ZodType, 'output')
    return {
      name,
      in: 'query',
      required: !(field as z.ZodType).safeParse(undefined).success,
      ...(description === undefined ? {} : { description }),
      schema,
    }
  })
}

function commandSchema(type: string, fields: JsonObject): JsonObject {
  const { properties, required, ...rest } = fields as { properties?: JsonObject; required: string[] }
  return {
    ...rest,
    properties: { type: { const: type }, ...properties },
    required: ['type', ...required],
  }
}

function sharedSchemas(): Record<string, JsonObject> {
  return Object.fromEntries(
    Object.entries(SHARED).map(([name, schema]) => [name, schemaOf(schema, 'output', name)]),
  )
}

/** Named schemas become references. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', self?: string): JsonObject {
  const named = z.registry<{ id: string }>()
  for (const [id, shared] of Object.entries(SHARED)) if (id !== self) named.add(shared, { id })
  const text = JSON.stringify(z.toJSONSchema(schema, { io, unrepresentable: 'any', metadata: named }))
  const {
    $schema: _,
    $defs: __,
    ...plain
  } = JSON.parse(text.replaceAll('"#/$defs/', `"${REF}`)) as JsonObject
  return plain
}

function commandName(type: string): string {
  return `Command_${type}`
}

function ref(name: string): JsonObject {
  return { $ref: `${REF}${name}` }
}

function json(schema: JsonObject): JsonObject {
  return { 'application/json': { schema } }
}

function describeWho({ who, method }: Route): { description?: string } {
  if (who === 'person') return { description: "Requires a person's token." }
  if (who !== 'operator') return {}
  return method === 'get'
    ? { description: "Requires the operator's or any person's token." }
    : { description: "Requires the operator's token or that of a person with the role operator." }
}
