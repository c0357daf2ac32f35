import { AppError } from '../../../base/errors.ts'
import { personBehind } from '../../../commands/team.ts'
import { setCookie, splitToken } from '../browser-session.ts'
import type { Call, RouteHandler } from '../call.ts'

const SESSION_MS = 7 * 24 * 3600_000

/** A link that signs a browser in, once. */
export const mintLogin: RouteHandler<'mintLogin'> = ({ logins }, call) => {
  refuseBrowser(call)
  const { caller } = call
  const { code, endsAt } = logins.create(caller.principal, caller.token)
  // After the #: browsers send it to nobody.
  return { path: `/#/login/${code}`, expires_at: new Date(endsAt).toISOString() }
}

export const openSession: RouteHandler<'openSession'> = async (desk, { body, outgoing }) => {
  const { tokens } = desk.engine
  const login = desk.logins.redeem(body.code)
  // Whoever asked for the link may have been shut out since.
  const person =
    login === undefined || tokens.authenticate(login.token) === undefined
      ? undefined
      : personBehind(desk.engine.team(), login.holder)
  if (login === undefined || person === undefined) throw usedUp()
  const { token, endsAt } = await tokens.mintSession(login.holder, SESSION_MS)
  const { cookie, header } = splitToken(token)
  outgoing.setHeader('set-cookie', setCookie(desk.cookie(), cookie, SESSION_MS / 1000))
  return { name: person.name, role: person.role, half: header, expires_at: new Date(endsAt).toISOString() }
}

export const closeSession: RouteHandler<'closeSession'> = async (desk, call) => {
  const { tokenId } = call.caller.principal
  if (!call.caller.isBrowser || tokenId === undefined) throw noSession()
  call.outgoing.setHeader('set-cookie', setCookie(desk.cookie(), '', 0))
  await desk.engine.tokens.revoke(tokenId, call.me)
  return { status: 'signed_out' }
}

export const showMe: RouteHandler<'me'> = ({ engine }, { caller, me }) => {
  const person = personBehind(engine.team(), caller.principal)
  const endsAt = engine.tokens.endsAt(caller.token)
  return {
    name: me,
    kind: caller.principal.kind,
    ...(person === undefined ? {} : { role: person.role }),
    ...(endsAt === undefined ? {} : { expires_at: new Date(endsAt).toISOString() }),
  }
}

/** Whoever got into a page must not get further than the page. */
export function refuseBrowser({ caller }: Pick<Call, 'caller'>) {
  if (!caller.isBrowser) return
  throw new AppError('FORBIDDEN', 'A browser may not make tokens or links', {
    hint: 'Do it where the service runs: orc token NAME, orc open.',
  })
}

function usedUp(): AppError {
  return new AppError('UNAUTHENTICATED', 'This link was used before, or is too old', {
    hint: 'Make another one: orc open.',
  })
}

function noSession(): AppError {
  return new AppError('CONFLICT', 'This is no session of a browser', {
    hint: 'orc token revoke ends a token.',
  })
}
