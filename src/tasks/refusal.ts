import { AppError } from '../base/errors.ts'
import { REFUSALS, type TaskRefusal } from './core/refusal.ts'

export function refusalError({ code, message }: TaskRefusal): AppError {
  const { error, hint } = REFUSALS[code]
  return new AppError(error, message, { hint, data: { refusal: code } })
}
