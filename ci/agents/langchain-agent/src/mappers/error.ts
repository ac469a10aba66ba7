// Errors of the model's provider as errors of the protocol.
import { RequestError } from "@agentclientprotocol/sdk"
import { fault } from "../fault.js"

export function toRequestError(e: unknown): RequestError {
	if (e instanceof RequestError) return e
	const { status, message } = e as { status?: number; message?: string }
	const details = { message: message ?? String(e), ...(status ? { status } : {}) }
	const refused = status === 401 || status === 403 || (fault("model-400-told-as-login-needed") && /^4\d\d/.test(details.message))
	if (refused) return RequestError.authRequired(details, "the model's provider refuses the key")
	return RequestError.internalError(details, details.message)
}
