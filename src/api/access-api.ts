import { z } from 'zod'
import { ROLES } from '../base/person.ts'
import type { Routes } from '../base/route.ts'

/** Who the caller is, and how a browser becomes one. */
export const SIGN_IN_ROUTES = {
  mintLogin: {
    method: 'post',
    path: '/api/v1/logins',
    who: 'person',
    summary: 'A link that signs a browser in to the control room as the caller, once and within 5 minutes',
    body: z.object({}),
    answer: z.object({
      path: z.string().describe('What follows the address of the service'),
      expires_at: z.string(),
    }),
  },
  openSession: {
    method: 'post',
    path: '/api/v1/sessions',
    who: 'anyone',
    summary:
      'Sign a browser in with the code of such a link. Half of its token comes as a cookie, the other half is sent as X-Orc-Session',
    body: z.object({ code: z.string().max(100) }),
    answer: z.object({
      name: z.string(),
      role: z.enum(ROLES),
      half: z.string(),
      expires_at: z.string(),
    }),
  },
  closeSession: {
    method: 'delete',
    path: '/api/v1/session',
    who: 'person',
    summary: 'Sign this browser out',
    answer: z.object({ status: z.literal('signed_out') }),
  },
  me: {
    method: 'get',
    path: '/api/v1/me',
    who: 'token',
    summary: 'Who the caller is, and what they may do',
    answer: z.object({
      name: z.string(),
      kind: z.enum(['agent', 'person', 'operator']),
      role: z.enum(ROLES).optional(),
      expires_at: z.string().optional().describe('Of a session in a browser'),
    }),
  },
} as const satisfies Routes

export const TOKEN_ROUTES = {
  tokens: {
    method: 'get',
    path: '/api/v1/tokens',
    who: 'operator',
    summary: 'The valid tokens by id; never the tokens themselves',
    answer: z.object({
      tokens: z.array(
        z.object({
          id: z.string(),
          agent: z.string().describe('Whose it is: the name of an agent or a person, or operator'),
          kind: z.enum(['agent', 'person', 'operator']),
          created_at: z.string(),
          expires_at: z.string().optional().describe('Of a session in a browser'),
        }),
      ),
    }),
  },
  mintToken: {
    method: 'post',
    path: '/api/v1/tokens',
    who: 'operator',
    summary:
      "Make a token for an agent; it is shown this once. Those of people only the operator's own token makes",
    body: z.object({ agent: z.string().describe('An agent, a person of orc.yaml, or operator') }),
    answer: z.object({ id: z.string(), agent: z.string(), token: z.string() }),
  },
  revokeTokens: {
    method: 'delete',
    path: '/api/v1/tokens/{which}',
    who: 'operator',
    summary: 'Revoke a token by its id, or all tokens of an agent or person, at once',
    answer: z.object({ revoked: z.number() }),
  },
} as const satisfies Routes
