import { z } from 'zod'
import type { Routes } from '../base/route.ts'
import { defineCommand, routeOf } from '../protocol/command.ts'

export const HaltSchema = z
  .object({ by: z.string(), at: z.string(), reason: z.string().optional() })
  .describe('Who halted everything, when and why. POST /api/v1/go resumes')

export const haltCommand = defineCommand({
  type: 'halt',
  audience: 'people',
  summary:
    'Halt everything at once: interrupts busy agents; until it is ended nothing is delivered or started, and timers stand still',
  fields: z.object({ reason: z.string().trim().min(1).max(500).optional() }),
  example: 'orc service halt --reason "wrong branch"',
  details: z.object({
    status: z.literal('halted'),
    already: z
      .boolean()
      .describe('Everything was halted already; agents that were still busy were interrupted again'),
    halt: HaltSchema,
    interrupts: z
      .array(z.object({ agent: z.string(), stopped: z.boolean(), evidence: z.string() }))
      .describe('Whether the turn of each busy agent has ended'),
  }),
})

export const endHaltCommand = defineCommand({
  type: 'end_halt',
  audience: 'people',
  summary: 'Resume everything after a halt; timers continue with the time they had left',
  fields: z.object({}),
  example: 'orc service go',
  details: z.object({
    status: z.literal('going'),
    halt: HaltSchema.optional().describe('The halt that ended; absent if nothing was halted'),
    lasted_seconds: z.number().optional(),
    told: z
      .array(z.string())
      .describe('Agents that were interrupted or refused and get a message to continue'),
  }),
})

export const HALT_ROUTES = {
  halt: { method: 'post', path: '/api/v1/halt', who: 'operator', ...routeOf(haltCommand) },
  go: { method: 'post', path: '/api/v1/go', who: 'operator', ...routeOf(endHaltCommand) },
} as const satisfies Routes
